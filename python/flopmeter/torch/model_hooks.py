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
_MAKERS = ("torch.cuda.graphs", "torch.xpu.graphs", "transformer_engine.pytorch.graph")


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


def _let_make_graphs(module: ModuleType) -> None:
    """``make_graphed_callables`` refuses a module with hooks."""
    original = module.make_graphed_callables
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def make_graphed_callables(callables: Any, *args: Any, **kwargs: Any) -> Any:
        with _without_hooks(callables if isinstance(callables, (tuple, list)) else (callables,)):
            return original(callables, *args, **kwargs)

    replace_function(module, "make_graphed_callables", original, make_graphed_callables)


@functools.cache
def _let_all_make_graphs() -> None:
    for name in _MAKERS:
        after_import(name, _let_make_graphs)


def put_on(module: torch.nn.Module, before: Callable[..., None], after: Callable[..., None], **how: bool) -> list[Any]:
    """Handles of a hook before forward, to which ``how`` applies, and of one that always runs after it."""
    _let_all_make_graphs()
    for name in _KINDS:
        if not getattr(module, name):  # else an existing handle refers to this dict
            setattr(module, name, _Hooks())
    handle = module.register_forward_pre_hook(before, **how)
    try:
        # always: a checkpoint that has recomputed enough stops with an exception
        return [handle, module.register_forward_hook(after, always_call=True)]
    except TypeError:  # torch 1.13, whose checkpoints run to their end
        return [handle, module.register_forward_hook(after)]
