# SPDX-License-Identifier: Apache-2.0
"""Reports the running module to the adapter: two hooks per module while a count by module is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flopmeter.torch import as_module, loaded_torch
from flopmeter.torch.adapter import torch_adapter
from flopmeter.torch.model_hooks import put_on

if TYPE_CHECKING:
    import torch


ROOT = "."  # the adapter's name for the model itself


class ModuleHooks:
    """Hooks on all modules of a model, or of several models by name."""

    def __init__(self, adapter: ModuleType, modules: torch.nn.Module | Mapping[str, torch.nn.Module]) -> None:
        self._adapter = adapter
        self._open = threading.local()
        self._handles: list[Any] = []
        compiler = getattr(loaded_torch(), "compiler", None)
        self._is_compiling: Callable[[], bool] = getattr(compiler, "is_compiling", bool)
        models = modules if isinstance(modules, Mapping) else {"": modules}
        for prefix, model in models.items():
            for name, module in model.named_modules(prefix=prefix):
                self._hook(module, adapter.module_id(name or ROOT))

    def _hook(self, module: torch.nn.Module, module_id: int) -> None:
        is_compiling = self._is_compiling

        # Dynamo traces the hooks: compiled graphs know their modules themselves.
        def enter(_module: torch.nn.Module, _args: object) -> None:
            if is_compiling():
                return
            tokens = self._open.__dict__.setdefault("tokens", [])
            tokens.append(self._adapter.enter_module(module_id))

        def leave(_module: torch.nn.Module, _args: object, _result: object) -> None:
            if is_compiling():
                return
            tokens = self._open.__dict__.get("tokens")
            if tokens:
                self._adapter.leave_module(tokens.pop())

        self._handles += put_on(module, enter, leave)

    @classmethod
    def replicated(cls, adapter: ModuleType, model: torch.nn.Module, patterns: str) -> ModuleHooks:
        """Hooks on the modules that ``patterns`` name: all ranks of a tensor-parallel group repeat them."""
        hooks = cls(adapter, {})
        names = dict(model.named_modules())
        for pattern in (each.strip() for each in patterns.split(",")):
            found = [name for name in names if fnmatchcase(name, pattern)]
            if not found:
                raise ValueError(f"replicated_modules: the model has no module '{pattern}'; it has {', '.join(list(names)[1:9])}, …")
            for name in found:
                hooks._hook(names[name], adapter.replicated_module())
        return hooks

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()


def replicated_hooks(model: Any, patterns: str) -> ModuleHooks | None:
    """Hooks that mark the modules which all tensor-parallel ranks repeat; None without patterns."""
    if not patterns:
        return None
    if as_module(model) is None:
        raise ValueError("replicated_modules names modules of the model: pass the model itself as model=")
    return ModuleHooks.replicated(torch_adapter(), model, patterns)
