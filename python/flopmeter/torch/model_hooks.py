# SPDX-License-Identifier: Apache-2.0
"""Puts hooks on a user's module so that it can still be copied and saved."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class _Hooks(OrderedDict):  # type: ignore[type-arg]
    """The hooks of a module. Copies and saved files of the module do not contain those of flopmeter."""

    def __reduce__(self) -> Any:
        others = [(key, hook) for key, hook in self.items() if not str(getattr(hook, "__module__", "")).startswith("flopmeter.")]
        return OrderedDict, (others,)


def put_on(module: torch.nn.Module, before: Callable[..., None], after: Callable[..., None], **how: bool) -> list[Any]:
    """Handles of a hook before forward, to which ``how`` applies, and of one that always runs after it."""
    for name in ("_forward_pre_hooks", "_forward_hooks"):
        if not getattr(module, name):  # else an existing handle refers to this dict
            setattr(module, name, _Hooks())
    handle = module.register_forward_pre_hook(before, **how)
    try:
        # always: a checkpoint that has recomputed enough stops with an exception
        return [handle, module.register_forward_hook(after, always_call=True)]
    except TypeError:  # torch 1.13, whose checkpoints run to their end
        return [handle, module.register_forward_hook(after)]
