# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.profile()``: times of all operators in a code block. It is slow: use it for single steps."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from flopmeter.torch.adapter import torch_adapter


class OpProfileRow(NamedTuple):
    """Calls of one operator on arguments of about the same size."""

    name: str
    kind: str  # compute, memory, tiny, or unknown
    calls: int
    self_seconds: float  # without the operators it called
    elements: int  # of its largest argument, rounded down to a power of two
    backward: bool


class OpProfiler:
    """Operators of a ``with flopmeter.profile() as s:`` block; readable after the block."""

    def __init__(self, tiny_seconds: float) -> None:
        self._tiny_seconds = tiny_seconds
        self._profiler: Any = None
        self._result: dict[str, Any] = {}

    def __enter__(self) -> OpProfiler:
        self._profiler = torch_adapter().OpProfiler(self._tiny_seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._result = self._profiler.stop()

    @property
    def rows(self) -> list[OpProfileRow]:
        """Rows sorted by self time, longest first."""
        return [OpProfileRow(*row) for row in self._result["rows"]]

    @property
    def wall_seconds(self) -> float:
        """Wall time of the block."""
        return self._result["wall_seconds"]

    @property
    def busy_seconds(self) -> float:
        """Self time of all operators in all threads."""
        return self._result["busy_seconds"]

    def seconds(self, kind: str) -> float:
        """Self time of the operators of one kind."""
        return sum(row.self_seconds for row in self.rows if row.kind == kind)

    @property
    def unknown_ops(self) -> dict[str, float]:
        """Operators that may have FLOPs but have no rule, with their share of the time of all operators."""
        shares: dict[str, float] = {}
        for row in self.rows:
            if row.kind == "unknown":
                shares[row.name] = shares.get(row.name, 0.0) + row.self_seconds / self.busy_seconds
        return shares


def profile(tiny_seconds: float = 10e-6) -> OpProfiler:
    """Profile all operators in ``with flopmeter.profile() as s:``, in all threads."""
    return OpProfiler(tiny_seconds)
