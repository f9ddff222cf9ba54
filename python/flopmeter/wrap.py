# SPDX-License-Identifier: Apache-2.0
"""``monitor.wrap(loader)``: times the wait for data, and makes steps where the loop marks none itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flopmeter import _flopmeter

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

T = TypeVar("T")
_DATA = _flopmeter.phases["data"]


class Wrapped(Generic[T]):
    """A loader whose waits are timed; everything else is the loader's own."""

    def __init__(self, monitor: Monitor, loader: Iterable[T]) -> None:
        self._monitor = monitor
        self._loader = loader

    def __iter__(self) -> Iterator[T]:
        monitor = self._monitor
        if monitor._is_evaluation():
            yield from self._loader
            return
        core = monitor._core
        monitor._loop_begins()
        core.begin_phase(_DATA)
        try:
            iterator = iter(self._loader)
            while True:
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
                core.end_phase(_DATA)
                monitor._batch_arrived(batch)
                yield batch
                monitor._batch_done()
                core.begin_phase(_DATA)
        finally:
            monitor._loop_ended()

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
