# SPDX-License-Identifier: Apache-2.0
"""Calls back when a module has been imported, or at once if it is there."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flopmeter.guard import describe_error
from flopmeter.log import log_once

_waiting: dict[str, list[Callable[[ModuleType], None]]] = {}


def _run(module: ModuleType, callback: Callable[[ModuleType], None]) -> None:
    try:
        callback(module)
    except Exception as error:  # the module works without being counted
        log_once(f"work of {module.__name__} may not be counted: {describe_error(error)}")


class _Loader:
    """The loader that Python found, and the callbacks when the module is there."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for callback in _waiting.get(module.__name__, []):
            _run(module, callback)


class _Finder:
    """First on the meta path; answers for modules that are waited for."""

    _asking: set[str] = set()  # other finders, which may ask this one in turn

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in _waiting or name in cls._asking:
            return None
        cls._asking.add(name)
        try:
            for finder in sys.meta_path:
                ask = None if finder is cls else getattr(finder, "find_spec", None)
                spec = ask and ask(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader)
                    return spec
            return None
        finally:
            cls._asking.discard(name)


def after_import(name: str, callback: Callable[[ModuleType], None]) -> None:
    """Call ``callback(module)`` now if the module is imported, and after each import of it from now on."""
    _waiting.setdefault(name, []).append(callback)
    if name in sys.modules:
        _run(sys.modules[name], callback)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
