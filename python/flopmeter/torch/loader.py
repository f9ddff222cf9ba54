# SPDX-License-Identifier: Apache-2.0
"""Waits for data where the loop does not hand over its loader."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Fetch = Callable[[Any], Any]


class Loaders:
    """Stands in for the next() of all of torch's loaders: ``around`` is given that of torch, and the iterator."""

    def __init__(self, around: Callable[[Fetch, Any], Any]) -> None:
        self._kind = kind = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
        self._original = original = kind.__next__
        kind.__next__ = lambda iterator: around(original, iterator)

    def restore(self) -> None:
        """As it was."""
        self._kind.__next__ = self._original
