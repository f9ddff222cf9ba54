# SPDX-License-Identifier: Apache-2.0
"""Finds forward, backward and optimizer of a step through torch's own hooks; patches nothing."""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

from flopmeter import _flopmeter
from flopmeter._adapter import ready_adapter

if TYPE_CHECKING:
    from flopmeter._monitor import Monitor

FORWARD, BACKWARD, OPTIMIZER = (_flopmeter.phases[name] for name in ("forward", "backward", "optimizer"))
_MOST_OUTPUTS = 4  # tensors of a model's output that are watched for the start of backward
_suspended = 0


@contextmanager
def suspended() -> Iterator[None]:
    """Nothing that runs inside belongs to a step."""
    global _suspended
    _suspended += 1
    try:
        yield
    finally:
        _suspended -= 1


def _tensors(output: Any) -> list[Any]:
    """The output's first tensors that lead back to parameters, the loss of a Hugging Face output among them."""
    if getattr(output, "requires_grad", False):
        return [output]
    values = output if isinstance(output, (list, tuple)) else output.values() if isinstance(output, Mapping) else ()
    return [value for value in values if getattr(value, "requires_grad", False)][:_MOST_OUTPUTS]


class TorchHooks:
    """Hooks of one monitor: on its model, if it has one, and on all optimizers, unless somebody else calls for them."""

    def __init__(self, monitor: Monitor, model: Any, optimizers: bool = True) -> None:
        torch = sys.modules["torch"]
        self._monitor = weakref.ref(monitor)
        self._core = monitor._core
        self._thread = get_ident()
        self._in_optimizer = False
        self._guessed_backward = False  # it cannot be seen from this thread: backward is what follows forward
        self._unseen = False  # a backward since the last forward would not have been seen
        self._is_compiling = torch.compiler.is_compiling
        self._has_gradients = torch.is_grad_enabled
        adapter = ready_adapter()
        self._backward = adapter.BackwardWatch(self._core.address) if adapter else None
        self.phases = True
        self._handles = []
        if optimizers:
            optimizer = importlib.import_module("torch.optim.optimizer")
            self._handles += [
                optimizer.register_optimizer_step_pre_hook(self._optimizer_begins),
                optimizer.register_optimizer_step_post_hook(self._optimizer_ended),
            ]
        if isinstance(model, torch.nn.Module):
            self._handles += [
                model.register_forward_pre_hook(self._forward_begins, with_kwargs=True),
                model.register_forward_hook(self._forward_ended, always_call=True),
            ]

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._backward = None
        self._thread = 0  # whoever still calls them is not heard

    def _skip(self) -> bool:
        return _suspended > 0 or get_ident() != self._thread

    def _forward_begins(self, model: Any, args: Any, kwargs: Any) -> None:
        if self._is_compiling() or self._skip():
            return
        monitor = self._monitor()
        if monitor is None:
            return
        if not model.training:
            monitor._evaluation_begins()
            return
        self._end_guess()
        monitor._forward_begins(kwargs or args if self._has_gradients() else None)
        if self.phases:
            self._core.begin_phase(FORWARD)

    def _forward_ended(self, model: Any, _args: Any, output: Any) -> None:
        if self._is_compiling() or self._skip() or not model.training or not self.phases:
            return
        self._core.end_phase(FORWARD)
        if not self._has_gradients():
            return
        told = self._watch(output)
        if told is None or self._backward is None:
            self._unseen = True
        if told is False and not self._guessed_backward:
            self._guessed_backward = True
            self._core.begin_phase(BACKWARD)

    def _watch(self, output: Any) -> bool | None:
        """Whether backward is told when it reaches the output; None where nothing leads back from there."""
        if self._backward is None:
            return False
        told = None
        for tensor in _tensors(output):
            this = self._backward.watch(tensor._cdata)
            if this is not None:
                told = this and told is not False
        return told

    def take_begun(self) -> bool:
        """Whether a backward began since this was last asked, or may have."""
        unseen, self._unseen = self._unseen, False
        return (self._backward is not None and self._backward.take_begun()) or unseen

    def _end_guess(self) -> None:
        if self._guessed_backward:
            self._guessed_backward = False
            self._core.end_phase(BACKWARD)

    def _optimizer_begins(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        monitor = self._monitor()
        if self._skip() or monitor is None:
            return
        self._end_guess()
        monitor._optimizer_begins()
        if self.phases:
            self._in_optimizer = True
            self._core.begin_phase(OPTIMIZER)

    def _optimizer_ended(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        monitor = self._monitor()
        if self._skip() or monitor is None:
            return
        if self._in_optimizer:
            self._in_optimizer = False
            self._core.end_phase(OPTIMIZER)
        monitor._optimizer_ended()

    def step_ends(self) -> None:
        """No phase of ours outlives its step."""
        self._end_guess()
