# SPDX-License-Identifier: Apache-2.0
"""Megatron's training loop without an edit: wraps functions of ``megatron.training.training`` after its import.

Megatron's ``train()`` calls these functions by their global names, in every core release since 0.7.  Their parameters have
moved between releases, so they are bound by name.  A step lasts from the end of ``training_log()`` to its next end, as on
Megatron's own clock; evaluations and checkpoints between steps are separate records.
"""

from __future__ import annotations

import argparse
import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flopmeter.guard import guarded
from flopmeter.integrations.megatron_loop import Loop, loss_of, on_host

_FUNCTIONS = ("train", "train_step", "training_log", "evaluate_and_print_results", "save_checkpoint_and_time", "get_args")

_loop: Loop | None = None
_training: _Training | None = None  # while Megatron's train() runs


def current() -> Loop | None:
    """The loop that is monitored."""
    return _loop


def marks_steps() -> bool:
    """Whether steps are marked here, and not by the hooks that a program calls."""
    return _training is not None


def start(args: argparse.Namespace, **more: Any) -> Loop:
    """Monitor a loop with these arguments."""
    global _loop
    inside: dict[str, Any] = {} if _training is None else {"modules": _training.modules, "own_flops": _training.own_flops}
    _loop = Loop(args, **inside, **more)
    return _loop


def stop(wandb_writer: Any = None) -> None:
    """End the monitor."""
    global _loop
    loop, _loop = _loop, None
    if loop is not None:
        loop.finish(wandb_writer)


class _Training:
    """One call of Megatron's train()."""

    def __init__(self, module: ModuleType, modules: Any) -> None:
        self._module = module
        self.modules = list(modules) if isinstance(modules, (list, tuple)) else [modules]
        self.own_flops = getattr(module, "num_floating_point_operations", None)
        self._failed = False
        self._iterations = 0  # that began, for releases which do not pass their number
        self._open: int | None = None

    def detach(self) -> None:
        """Called by the guard after a failure: the loop runs on without a monitor."""
        self._failed = True
        if _loop is not None:
            _loop.detach()

    def _ready_loop(self) -> Loop | None:
        """The loop, made in the first iteration unless the program's own hooks made one."""
        if _loop is None and not self._failed:
            start(self._module.get_args())
        return _loop

    @guarded
    def begin(self, iteration: int | None) -> None:
        """train_step() is called; ``iteration`` counts from 0; None if the release does not pass it."""
        if self._failed or (loop := self._ready_loop()) is None:
            return
        if iteration is None:
            args = self._module.get_args()
            counted = int(getattr(args, "iteration", 0) or 0) + self._iterations
            iteration = int(getattr(args, "curr_iteration", counted))  # it includes iterations that Megatron skipped
        self._iterations += 1
        if self._open is not None:  # it was not logged: Megatron left it
            loop.abandon()
        self._open = iteration + 1
        loop.begin(self._open)

    @guarded
    def end(self, logged: dict[str, Any]) -> None:
        """training_log() is done."""
        if self._open is None or _loop is None:
            return
        number = logged.get("iteration")
        iteration = number if isinstance(number, int) else self._open
        self._open = None
        values = {"loss": loss_of(logged.get("loss_dict")), "grad_norm": logged.get("grad_norm"), "learning_rate": logged.get("learning_rate")}
        writer = getattr(self._module, "get_wandb_writer", lambda: None)()
        tokens, squares = logged.get("total_real_tokens_in_batch"), logged.get("seqlen_squared_sum_in_batch")
        packed = None if tokens is None or squares is None else (float(tokens), float(squares))
        _loop.end(iteration, writer, {name: value for name, value in values.items() if on_host(value)}, packed)

    @guarded
    def emit(self, event: str) -> None:
        if _loop is not None and not self._failed:
            _loop.monitor.emit(event)


def _bound(signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by name; empty if the call is wrong, which the function itself reports."""
    try:
        return {**signature.bind(*args, **kwargs).arguments, **kwargs}
    except TypeError:
        return {}


def _wrapped_train(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def train(*args: Any, **kwargs: Any) -> Any:
        global _training
        if _training is not None:
            return original(*args, **kwargs)
        _training = _Training(module, _bound(signature, args, kwargs).get("model", ()))
        try:
            return original(*args, **kwargs)
        finally:
            _training = None
            stop(getattr(module, "get_wandb_writer", lambda: None)())

    return train


def _wrapped_step(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def train_step(*args: Any, **kwargs: Any) -> Any:
        if _training is not None:
            _training.begin(_bound(signature, args, kwargs).get("iteration"))
        return original(*args, **kwargs)

    return train_step


def _wrapped_log(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def training_log(*args: Any, **kwargs: Any) -> Any:
        # Losses may be changed by the call, and a device was waited for, if at all, when it returns.
        result = original(*args, **kwargs)
        if _training is not None:
            _training.end(_bound(signature, args, kwargs))
        return result

    return training_log


def _wrapped_phase(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        training = _training
        if training is None:
            return original(*args, **kwargs)
        training.emit(f"{name}_begin")
        try:
            return original(*args, **kwargs)
        finally:
            training.emit(f"{name}_end")

    return call


def install(module: ModuleType) -> None:
    """Wrap the functions of ``megatron.training.training``; an AttributeError if one of them is missing."""
    missing = [name for name in _FUNCTIONS if not callable(getattr(module, name, None))]
    if missing:
        raise AttributeError(f"it has no function {', '.join(missing)}")
    wrapped = {
        "train": _wrapped_train(module, module.train),
        "train_step": _wrapped_step(module.train_step),
        "training_log": _wrapped_log(module.training_log),
        "evaluate_and_print_results": _wrapped_phase("evaluation", module.evaluate_and_print_results),
        "save_checkpoint_and_time": _wrapped_phase("checkpoint", module.save_checkpoint_and_time),
    }
    vars(module).update(wrapped)
