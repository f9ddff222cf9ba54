# SPDX-License-Identifier: Apache-2.0
"""Counts operators in Python if the torch adapter cannot be compiled: a dispatch mode of torch sees every call.

Every operator of a counted step then takes some microseconds more, so a monitor counts one step per batch shape and
estimates the others. The rules and the counters are those of the compiled adapter.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from flopmeter import _flopmeter

_FORWARD, _BACKWARD, _RECOMPUTE = range(3)  # as adapter_abi.h numbers them
_COMPLEX = {"torch.complex32": "fp16", "torch.complex64": "fp32", "torch.complex128": "fp64"}
_INTEGER = {"torch.uint8": "int8", "torch.int8": "int8", "torch.quint8": "int8", "torch.qint8": "int8"}


class _Op(NamedTuple):
    """A counted operator."""

    address: int
    places: list[int]  # at which its rule reads each parameter, or -1


def _form(value: Any) -> Any:
    """An argument as ``add_call`` reads it."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype)
        return _COMPLEX.get(name) or _INTEGER.get(name, name), name in _COMPLEX, list(value.shape)
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, (list, tuple)):
        forms = [_form(each) for each in value]
        same = all(isinstance(each, int) for each in forms) or all(isinstance(each, tuple) for each in forms)
        return forms if same else None
    return None


def _fp32_dtypes(device: torch.device) -> list[str]:
    """The dtypes in which fp32 matmuls, convolutions, and recurrent layers run."""
    if device.type != "cuda":
        return ["fp32"] * 3
    matmul, others = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    return ["tf32" if allowed else "fp32" for allowed in (matmul, others, others)]


def _runs_checkpoint() -> bool:
    """Whether the running backward computes a forward again: gradients have no graph, except with create_graph."""
    if not torch.is_grad_enabled():
        return False
    node = torch._C._current_autograd_node()
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return True
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return hooks is None or hooks(False) is not None


def _pass() -> int:
    if torch._C._current_graph_task_id() == -1:
        return _FORWARD
    return _RECOMPUTE if _runs_checkpoint() else _BACKWARD


def _compiles() -> bool:
    """Whether the program uses torch.compile, which gives up on code that runs under a dispatch mode."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    return any(backend is not None for backend in getattr(frames, "cached_backends", {}).values())


class Mode(TorchDispatchMode):
    """The dispatch mode, and the functions of the adapter that python/src/python_adapter.cpp calls."""

    def __init__(self) -> None:
        super().__init__()
        self._ops: dict[Any, _Op | None] = {}  # by overload; None if it is not counted
        self._user_ops: dict[str, int] = {}  # addresses by name
        self._users = 0
        self._thread: int | None = None  # on whose stack of modes this one is

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in self._ops:
            self._ops[func] = self._find(func)
        op = self._ops[func]
        if op is not None and self._users:
            self._count(op, func, args, kwargs or {}, result)
        return result

    def _find(self, func: Any) -> _Op | None:
        name, overload = func._schema.name, func._schema.overload_name
        full = f"{name}.{overload}" if overload else name
        user = self._user_ops.get(name) or self._user_ops.get(full)
        parameters = [argument.name for argument in func._schema.arguments]
        found = _Op(user, list(range(len(parameters)))) if user else _Op(*_flopmeter.find_op(full, parameters))
        return found if found.address else None

    def _count(self, op: _Op, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        try:
            output = result[0] if isinstance(result, (list, tuple)) and result else result
            first = next((each for each in args if isinstance(each, torch.Tensor)), output)
            if not isinstance(first, torch.Tensor) or first.device.type == "meta" or type(first).__name__ == "FakeTensor":
                return
            given = list(args)
            for argument in func._schema.arguments[len(args) :]:
                given.append(kwargs.get(argument.name, argument.default_value))
            if any(isinstance(each, torch.Tensor) and each.layout is not torch.strided for each in given):
                _flopmeter.add_unsupported_call(op.address)
                return
            arranged = [None] * (max(op.places, default=-1) + 1)
            for place, value in zip(op.places, given):
                if place >= 0:
                    arranged[place] = _form(value)
            fp32 = _fp32_dtypes(first.device)
            _flopmeter.add_call(op.address, arranged, _form(output), fp32, _pass(), torch.is_grad_enabled())
        except Exception:  # arguments of a form that no rule reads; the program must not see it
            _flopmeter.add_unsupported_call(op.address)

    def add_users(self, change: int) -> bool:
        """The mode is on the stack of the thread that counts first; False if it cannot be."""
        self._users += change
        return self._place()

    def _place(self) -> bool:
        here = threading.get_ident()
        if self._users and self._thread is None and not _compiles():
            self._thread = here
            self._rebuild_stack([self])
        elif not self._users and self._thread == here:
            self._thread = None
            self._rebuild_stack([])
        return self._thread == here

    def _rebuild_stack(self, bottom: list[Any]) -> None:
        """This mode is always the lowest: modes of the program end in the order in which the program began them."""
        modes = []
        while torch._C._len_torch_dispatch_stack():
            modes.append(_python_dispatch._pop_mode())
        for mode in [*bottom, *(each for each in reversed(modes) if each is not self)]:
            _python_dispatch._push_mode(mode)

    def intercept(self, name: str, op: int) -> int:
        """A user's rule for an operator; the result is a FlopmeterInterception."""
        space, _, short = name.partition("::")
        if not hasattr(getattr(torch.ops, space), short.partition(".")[0]):
            return 1
        self._user_ops[name] = op
        self._ops.clear()
        return 0

    def run_matmuls(self, rows: int, inner: int, columns: int, calls: int, counted: bool) -> float:
        """Nanoseconds for ``calls`` matmuls, counted or not."""
        a, b = torch.ones(rows, inner), torch.ones(inner, columns)
        users, self._users = self._users, int(counted)
        self._place()
        try:
            begin = time.perf_counter_ns()
            for _ in range(calls):
                torch.mm(a, b)
            return float(time.perf_counter_ns() - begin)
        finally:
            self._users = users
            self._place()


def attach() -> None:
    """Count in Python from now on; RuntimeError if the program does not allow it."""
    if _compiles():
        raise RuntimeError("the program uses torch.compile")
    _flopmeter.attach_python_adapter(Mode())
