# SPDX-License-Identifier: Apache-2.0
"""Names Triton kernels that multiply and have no rule: their matmuls do not pass the dispatcher.

A kernel is examined once, when Triton has compiled it.  Only launches of kernels that multiply are wrapped.  Kernels inside a
counted function or graph are part of it.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from flopmeter import _flopmeter
from flopmeter.guard import describe_error
from flopmeter.log import log_once
from flopmeter.torch.imports import after_import


def _name(function: Any) -> str:
    return f"{function.__module__}::{function.__qualname__}"


def _multiplies(kernel: Any, key: Any, device: Any) -> bool:
    try:
        return "tt.dot" in kernel.device_caches[device][0][key].asm["ttir"]
    except (AttributeError, IndexError, KeyError, TypeError):  # another version of Triton
        return "dot(" in str(getattr(kernel, "src", ""))


def _examine(*, key: Any, fn: Any, compile: dict[str, Any], is_manual_warmup: bool = False, **_more: Any) -> None:
    """Triton has compiled a kernel, in its first launch or before it."""
    kernel = fn.jit_function
    if isinstance(kernel.run, _flopmeter.CountedFunction) or not _multiplies(kernel, key, compile.get("device")):
        return
    name = _name(kernel.fn)
    kernel.run = _flopmeter.counted_function(name, kernel.run, list(kernel.arg_names))
    if not is_manual_warmup and not _flopmeter.inside_call():
        _flopmeter.add_unsupported(name)  # the launch that is under way


def _examine_compilations(knobs: ModuleType) -> None:
    previous = getattr(knobs.runtime, "jit_post_compile_hook", None)

    def hook(**details: Any) -> Any:
        try:
            _examine(**details)
        except Exception as error:
            log_once(f"a Triton kernel may not be counted: {describe_error(error)}")
        return previous(**details) if previous is not None else None

    knobs.runtime.jit_post_compile_hook = hook


def _examine_interpreted(interpreter: ModuleType) -> None:
    """TRITON_INTERPRET=1: kernels run in NumPy, without being compiled."""
    kind, builder = interpreter.InterpretedFunction, interpreter.InterpreterBuilder
    products = [0]
    run = kind.run

    for method in ("create_dot", "create_dot_scaled"):
        original = getattr(builder, method, None)
        if original is not None:

            def counted(self: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
                products[0] += 1
                return _original(self, *args, **kwargs)

            setattr(builder, method, functools.wraps(original)(counted))

    @functools.wraps(run)
    def counted_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = products[0]
        result = run(self, *args, **kwargs)
        if products[0] != before and not _flopmeter.inside_call():
            _flopmeter.add_unsupported(_name(self.fn))
        return result

    kind.run = counted_run


def install() -> None:
    """Name such kernels from now on."""
    after_import("triton.knobs", _examine_compilations)
    after_import("triton.runtime.interpreter", _examine_interpreted)
