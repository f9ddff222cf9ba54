# SPDX-License-Identifier: Apache-2.0
"""Registers the hooks of a monitor: on its model, on all optimizers, and on all loaders of torch.

The hooks are C functions of ``_flopmeter.Hooks`` that report events to the step tracker; no Python code runs in a steady
step.  What is rare (a failure, a model that is lost) comes back through ``_report``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flopmeter import _flopmeter
from flopmeter.guard import log_failure
from flopmeter.log import log_once
from flopmeter.torch import as_module, loaded_torch
from flopmeter.torch.adapter import ready_adapter
from flopmeter.torch.imports import after_import
from flopmeter.torch.model_hooks import put_on
from flopmeter.torch.patch import Patch, SharedPatch
from flopmeter.torch.replays import ReplayHook, count_replays_of

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

_left: list[TorchHooks] = []  # of monitors that were dropped while torch may have run their hooks


_live: weakref.WeakSet[TorchHooks] = weakref.WeakSet()


def _patch_compiled_modules(module: ModuleType) -> None:
    original = module.OptimizedModule.__init__

    @functools.wraps(original)
    def __init__(self: Any, mod: Any, *args: Any, **kwargs: Any) -> None:
        original(self, mod, *args, **kwargs)
        for hooks in list(_live):
            with contextlib.suppress(Exception):  # the model runs without being monitored
                hooks.on_compiled(mod, self)

    module.OptimizedModule.__init__ = __init__


@functools.cache
def _follow_compiled_modules() -> None:
    after_import("torch._dynamo.eval_frame", _patch_compiled_modules)


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Nothing that runs inside belongs to a step."""
    _flopmeter.suspend_hooks(1)
    try:
        yield
    finally:
        _flopmeter.suspend_hooks(-1)


def can_hook() -> bool:
    """Whether the program has a torch with hooks for all optimizers."""
    torch = loaded_torch()
    if torch is None:
        return False
    if hasattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_pre_hook"):
        return True
    log_once(f"torch {torch.__version__} has no hooks for optimizers: phases are not found, and a step is what the loop marks, or a batch")
    return False


def gradients_enabled() -> bool:
    """Whether torch computes gradients now; True without torch."""
    torch = loaded_torch()
    return torch is None or torch.is_grad_enabled()


def _delay_device(module: Any, seconds: float) -> bool:
    """Keep the device of this module busy, if not for 0 s; False if it has no kernel for that."""
    sleep = getattr(module, "_sleep", None)
    if sleep is None:
        return False
    cycles_per_second = 2e9  # of the fastest devices; on others it takes longer
    if seconds > 0:
        sleep(int(seconds * cycles_per_second))
    return True


def _reported_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report a function that waits for the device and does not pass the dispatcher."""

    @functools.wraps(original)
    def synchronize(*args: Any, **kwargs: Any) -> Any:
        _flopmeter.report_wait(True)
        try:
            return original(*args, **kwargs)
        finally:
            _flopmeter.report_wait(False)

    return synchronize


def _reported_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report where a backward pass begins: the loss may be computed after the model, in code that has no hooks."""

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        _flopmeter.report_backward()
        return original(*args, **kwargs)

    return backward


def _owns(models: list[weakref.ref[Any]], optimizer: Any) -> bool:
    """Whether the optimizer updates parameters of the models."""
    own = {id(each) for model in models if (module := model()) is not None for each in module.parameters()}
    return any(id(each) in own for group in optimizer.param_groups for each in group["params"])


def _report(hooks: weakref.ref[TorchHooks], name: str, value: Any) -> None:
    """Handles a report of the C functions; called inside a hook."""
    if name.startswith("failed"):
        log_failure(value)
    found = hooks()
    if name == "no_optimizer":
        log_once("no optimizer step is seen: each backward pass counts as a step from now on")
    elif name == "model_lost" and found is not None and found.on_model_lost is not None:
        found.on_model_lost()
    elif name in ("failed", "remove") and found is not None:
        found.remove()


class CollectorHook:
    """Measures Python's garbage collector, which stops the program."""

    def __init__(self) -> None:
        self._there = True
        gc.callbacks.append(_flopmeter.on_garbage_collection)

    def remove(self) -> None:
        """Remove the hook, once: another monitor may have the same."""
        if self._there:
            self._there = False
            with contextlib.suppress(ValueError):
                gc.callbacks.remove(_flopmeter.on_garbage_collection)


class TorchHooks:
    """The hooks of one monitor.  ``on_model_lost`` is called if optimizers step but the model is not called."""

    def __init__(
        self,
        monitor: Monitor,
        models: Iterable[Any],
        optimizers: bool,
        loader: bool,
        on_model_lost: Callable[[], None] | None,
    ) -> None:
        self.on_model_lost = on_model_lost
        self.callables = hooks = _flopmeter.Hooks(monitor.core, partial(_report, weakref.ref(self)))
        self._handles: list[Any] = []
        self._dropped = weakref.finalize(monitor, self._forget)  # a monitor that is dropped is to be freed
        self._dropped.atexit = False
        adapter = ready_adapter()
        if adapter is not None:
            hooks.set_backward(adapter.BackwardHook(monitor.core.address))
        while optimizers and _left:  # not while torch runs hooks of optimizers, which must not be removed then
            _left.pop().remove()
        if optimizers:
            optimizer = importlib.import_module("torch.optim.optimizer")
            self._handles += [
                optimizer.register_optimizer_step_pre_hook(hooks.optimizer_pre()),
                optimizer.register_optimizer_step_post_hook(hooks.optimizer_post()),
            ]
        torch: Any = loaded_torch()
        modules = [module for each in models if (module := as_module(each)) is not None]
        modules = [module for module in modules if not isinstance(module, torch.jit.ScriptModule)]  # it takes no hooks
        if modules:
            hooks.set_owner_check(partial(_owns, [weakref.ref(module) for module in modules]))
        self._modules: Any = weakref.WeakSet(modules)
        for module in modules:
            parameter = next(module.parameters(), None)
            if adapter is not None and parameter is not None and parameter.device.type not in ("cpu", "meta"):
                self._use_device(adapter, parameter)
            self._put_on(module)
        if modules:
            self._handles.append(ReplayHook(hooks.replay()))
            _live.add(self)
            self._find_compiled()
            _follow_compiled_modules()
        if loader:
            kind = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
            self._handles.append(Patch(kind, "__next__", hooks.fetch))

    def _use_device(self, adapter: Any, parameter: Any) -> None:
        torch: Any = loaded_torch()
        module = getattr(torch, parameter.device.type, None)
        adapter.use_device_of(parameter._cdata)
        self.callables.read_fetched()
        adapter.set_device_delay(partial(_delay_device, module))
        count_replays_of(parameter.device.type)
        for name in ("accelerator", parameter.device.type):
            owner: Any = getattr(torch, name, None)
            if callable(getattr(owner, "synchronize", None)):
                self._handles.append(SharedPatch(owner, "synchronize", _reported_wait))
        self._handles.append(SharedPatch(torch.autograd, "backward", _reported_backward))

    def _put_on(self, module: Any) -> None:
        self._handles += put_on(module, self.callables.forward_pre(), self.callables.forward_post(), with_kwargs=True)

    def on_compiled(self, module: Any, compiled: Any) -> None:
        """A module was compiled.  Compiled code skips its hooks: those of the object around it run."""
        if self._handles and module in self._modules:
            self._put_on(compiled)

    def _find_compiled(self) -> None:
        """Modules may have been compiled before the monitor was created."""
        eval_frame = sys.modules.get("torch._dynamo.eval_frame")
        kind = getattr(eval_frame, "OptimizedModule", None)
        if kind is None:
            return
        for each in gc.get_objects():
            if type(each) is kind:
                self.on_compiled(each.__dict__["_modules"].get("_orig_mod"), each)

    def remove(self) -> None:
        """Remove the hooks permanently."""
        _live.discard(self)
        self.callables.detach()
        self._dropped.detach()
        while self._handles:
            with contextlib.suppress(Exception):
                self._handles.pop().remove()

    def _forget(self) -> None:
        """The monitor was dropped, perhaps while torch runs these hooks: they are removed later."""
        self.callables.detach()
        _left.append(self)
