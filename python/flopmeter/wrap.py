# SPDX-License-Identifier: Apache-2.0
"""``monitor.wrap(loader)``: reports each wait for data and each batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flopmeter.torch.hooks import gradients_enabled

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

T = TypeVar("T")


class Wrapped(Generic[T]):
    """A loader that reports its batches; all attributes are the loader's own."""

    def __init__(self, monitor: Monitor, loader: Iterable[T]) -> None:
        self._monitor = monitor
        self._loader = loader

    def __iter__(self) -> Iterator[T]:
        emit = self._monitor.emit
        # Without hooks, gradients cannot be observed: each batch is a step.
        policy = "per_optimizer_step" if self._monitor.hooks is not None else "per_batch"
        replies = emit("loop_begin", policy=policy, gradients=policy == "per_batch" or gradients_enabled())
        if "not_training" in (replies or ()):
            yield from self._loader
            return
        try:
            emit("fetch_begin")
            iterator = iter(self._loader)
            while True:
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
                emit("fetch_end", batch=batch)
                yield batch
                emit("fetch_begin")
        finally:
            emit("loop_end")

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
