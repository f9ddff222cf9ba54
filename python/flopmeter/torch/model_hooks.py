# SPDX-License-Identifier: Apache-2.0
"""Puts hooks on a user's module so that it can still be copied and saved."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flopmeter.torch.imports import after_import
from flopmeter.torch.patch import replace_function

if TYPE_CHECKING:
    import torch


_KINDS = ("_forward_pre_hooks", "_forward_hooks")
_FLAGS = ("_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")  # of hooks, by their id
_REFUSE_HOOKS = {
    "torch.cuda.graphs": ("make_graphed_callables",),
    "torch.xpu.graphs": ("make_graphed_callables",),
    "transformer_engine.pytorch.graph": ("make_graphed_callables",),
    "torch.jit._recursive": ("infer_concrete_type_builder", "get_hook_stubs"),  # of torch.jit.script
}


def _is_ours(hook: Any) -> bool:
    return str(getattr(hook, "__module__", "")).startswith("flopmeter.")


class _Hooks(OrderedDict):  # type: ignore[type-arg]
    """The hooks of a module. Copies and saved files of the module do not contain those of flopmeter."""

    def __reduce__(self) -> Any:
        return OrderedDict, ([(key, hook) for key, hook in self.items() if not _is_ours(hook)],)


@contextlib.contextmanager
def _without_hooks(modules: Iterable[Any]) -> Iterator[None]:
    """Takes the hooks of flopmeter off the modules for a while."""
    kept = []
    for module in modules:
        for hooks in (getattr(module, kind, None) for kind in _KINDS):
            ours = {key: hook for key, hook in (hooks or {}).items() if _is_ours(hook)}
            for key in ours:
                del hooks[key]  # type: ignore[union-attr]
            kept.append((hooks, ours))
    try:
        yield
    finally:
        for hooks, ours in kept:
            for key, hook in reversed(ours.items()):
                hooks[key] = hook  # type: ignore[index]
                hooks.move_to_end(key, last=False)  # type: ignore[union-attr]


def _hide_hooks(names: tuple[str, ...], module: ModuleType) -> None:
    """Let functions that refuse hooks, and get one or more modules first, see none of flopmeter."""
    for name in names:
        original = getattr(module, name, None)
        if original is None or hasattr(original, "__wrapped__"):
            continue

        @functools.wraps(original)
        def call(modules: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            with _without_hooks(modules if isinstance(modules, (tuple, list)) else (modules,)):
                return _original(modules, *args, **kwargs)

        replace_function(module, name, original, call)


@functools.cache
def _hide_all_hooks() -> None:
    for module, names in _REFUSE_HOOKS.items():
        after_import(module, functools.partial(_hide_hooks, names))


def _set_own_id(module: Any, handle: Any) -> None:
    """Give a hook a negative id.  A saved module keeps the flags: a hook of the program that loads it must not get the same id."""
    old, handle.id = handle.id, -1 - handle.id
    for hooks in (getattr(module, name, None) for name in (*_KINDS, *_FLAGS)):
        if hooks and old in hooks:
            hooks[handle.id] = hooks.pop(old)


def put_on(module: torch.nn.Module, before: Callable[..., None], after: Callable[..., None], **how: bool) -> list[Any]:
    """Handles of a hook before forward, to which ``how`` applies, and of one that always runs after it."""
    _hide_all_hooks()
    for name in _KINDS:
        if not getattr(module, name):  # else an existing handle refers to this dict
            setattr(module, name, _Hooks())
    handles = [module.register_forward_pre_hook(before, **how)]
    try:
        # always: a checkpoint that has recomputed enough stops with an exception
        handles.append(module.register_forward_hook(after, always_call=True))
    except TypeError:  # torch 1.13, whose checkpoints run to their end
        handles.append(module.register_forward_hook(after))
    for handle in handles:
        _set_own_id(module, handle)
    return handles
