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
from flopmeter.torch.adapter import ready_adapter
from flopmeter.torch.model_hooks import put_on

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

FORWARD, BACKWARD, OPTIMIZER = (_flopmeter.phases[name] for name in ("forward", "backward", "optimizer"))
_MOST_OUTPUTS = 4  # tensors of a model's output that are watched for the start of backward
_suspended = 0
_left: list[TorchHooks] = []  # of monitors that are no more


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
    if not isinstance(output, (list, tuple, Mapping)):
        output = getattr(output, "__dict__", {})
    values = output.values() if isinstance(output, Mapping) else output
    return [value for value in values if getattr(value, "requires_grad", False)][:_MOST_OUTPUTS]


class TorchHooks:
    """Hooks of one monitor: on its model, if it has one, and on all optimizers, unless somebody else calls for them."""

    def __init__(self, monitor: Monitor, model: Any, optimizers: bool = True) -> None:
        torch = sys.modules["torch"]
        self._monitor = weakref.ref(monitor, self._forget)  # a monitor that is dropped is to be freed
        self._thread = get_ident()
        self._in_optimizer = False
        self._guessed_backward = False  # it cannot be seen from this thread: backward is what follows forward
        self._unseen = False  # a backward since the last forward would not have been seen
        self._tensor = torch.Tensor
        self._is_compiling = torch.compiler.is_compiling
        self.has_gradients = torch.is_grad_enabled
        adapter = ready_adapter()
        self._backward = adapter.BackwardHook(monitor._core.address) if adapter else None
        self.phases = True
        self.frozen_mode = False  # the model is trained in evaluation mode
        self._handles: list[Any] = []
        if optimizers:
            while _left:
                _left.pop().remove()
            optimizer = importlib.import_module("torch.optim.optimizer")
            self._handles += [
                optimizer.register_optimizer_step_pre_hook(self._optimizer_begins),
                optimizer.register_optimizer_step_post_hook(self._optimizer_ended),
            ]
        if isinstance(model, torch.nn.Module) and not isinstance(model, torch.jit.ScriptModule):  # it takes none
            self._handles += put_on(model, self._forward_begins, self._forward_ended, with_kwargs=True)

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._backward = None
        self._thread = 0  # whoever still calls them is not heard

    def _forget(self, _monitor: object) -> None:
        """The monitor was dropped, perhaps while torch goes through its hooks: they are taken off later."""
        self._backward = None
        self._thread = 0
        _left.append(self)

    def use_thread(self) -> None:
        """Steps are made in the calling thread: others are not heard."""
        self._thread = get_ident()

    # What follows runs in every step, between work that leaves the caches cold: few calls, and tests before them.

    def _forward_begins(self, model: Any, args: Any, kwargs: Any) -> None:
        if self._is_compiling() or _suspended or get_ident() != self._thread:  # in this order: a tracer stops at the first
            return
        monitor = self._monitor()
        if monitor is None:
            return
        gradients = self.has_gradients()
        if not model.training and not (self.frozen_mode and gradients):
            monitor._evaluation_begins()
            return
        if self._guessed_backward:
            self._end_guess(monitor)
        monitor._forward_begins((kwargs, args) if gradients else None)
        if self.phases:
            monitor._core.begin_phase(FORWARD)

    def _forward_ended(self, model: Any, _args: Any, output: Any) -> None:
        if self._is_compiling() or _suspended or get_ident() != self._thread or not self.phases:
            return
        monitor = self._monitor()
        gradients = self.has_gradients()
        if monitor is None or not model.training and not (self.frozen_mode and gradients):
            return
        monitor._core.end_phase(FORWARD)
        if not gradients:
            return
        if self._backward is not None and output.__class__ is self._tensor and output.requires_grad:
            told = self._backward.watch(output._cdata)
        else:
            told = self._watch(output)
        self._unseen = told is None or self._backward is None
        if told is False and not self._guessed_backward:
            self._guessed_backward = True
            monitor._core.begin_phase(BACKWARD)

    def _optimizer_begins(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self._is_compiling() or _suspended or get_ident() != self._thread:
            return
        monitor = self._monitor()
        if monitor is None:
            return
        if self._guessed_backward:
            self._end_guess(monitor)
        if monitor._early:
            monitor._end_early()  # the forward may come inside the optimizer's step
        if self.phases:
            self._in_optimizer = True
            monitor._core.begin_phase(OPTIMIZER)

    def _optimizer_ended(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self._is_compiling() or _suspended or get_ident() != self._thread:
            return
        monitor = self._monitor()
        if monitor is None:
            return
        if self._in_optimizer:
            self._in_optimizer = False
            monitor._core.end_phase(OPTIMIZER)
        monitor._optimizer_ended(optimizer)

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

    def has_begun(self) -> bool:
        """Whether a backward began since the model's last forward, or may have."""
        return self._unseen or self._backward is not None and self._backward.take_begun()

    def _end_guess(self, monitor: Monitor) -> None:
        self._guessed_backward = False
        monitor._core.end_phase(BACKWARD)

    def step_ends(self, monitor: Monitor) -> None:
        """No phase of ours outlives its step."""
        if self._guessed_backward:
            self._end_guess(monitor)
