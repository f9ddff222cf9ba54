# SPDX-License-Identifier: Apache-2.0
"""Replaces a function of another library; restores the original only if the replacement is still in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patch:
    """Replaces ``owner.name`` with ``make(original)``."""

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._name = name
        self._inherited = name not in vars(owner)
        self._original = getattr(owner, name)
        self._ours = make(self._original)
        setattr(owner, name, self._ours)

    def remove(self) -> None:
        """Restore the original, unless the program has replaced ours in the meantime."""
        if vars(self._owner).get(self._name) is not self._ours:
            return
        if self._inherited:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._original)
