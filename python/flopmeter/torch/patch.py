# SPDX-License-Identifier: Apache-2.0
"""Replaces functions of other libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any


def replace_function(module: ModuleType, name: str, original: Any, replacement: Any) -> None:
    """Replace a function in its module, and where other modules have imported it by name."""
    setattr(module, name, replacement)
    for other in list(sys.modules.values()):
        values = getattr(other, "__dict__", None)
        if isinstance(values, dict) and values.get(name) is original:
            values[name] = replacement


class Patch:
    """Replaces ``owner.name`` with ``make(original)`` until it is removed."""

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._name = name
        self._inherited = name not in vars(owner)
        self._original = getattr(owner, name)
        self._ours = make(self._original)
        if isinstance(owner, ModuleType) and isinstance(self._ours, FunctionType):  # pickle finds it there
            self._ours.__module__, self._ours.__qualname__ = owner.__name__, name
        setattr(owner, name, self._ours)

    def remove(self) -> None:
        """Restore the original, unless the program has replaced ours in the meantime."""
        if vars(self._owner).get(self._name) is not self._ours:
            return
        if self._inherited:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._original)


_shared: dict[tuple[int, str], tuple[Patch, int]] = {}  # by owner and name: the patch and how many use it


class SharedPatch:
    """A patch that several monitors need: the original returns with the last ``remove()``."""

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self._key = id(owner), name
        patch, users = _shared.get(self._key) or (Patch(owner, name, make), 0)
        _shared[self._key] = patch, users + 1

    def remove(self) -> None:
        """Restore the original if no one else needs the patch."""
        patch, users = _shared.pop(self._key)
        if users > 1:
            _shared[self._key] = patch, users - 1
        else:
            patch.remove()
