# SPDX-License-Identifier: Apache-2.0
"""The six ``perf/*`` metrics, of one record or of the steps since the last log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from flopmeter import _flopmeter

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

_WAIT_SECONDS = 0.05  # maximum time to wait for the writer thread to flush


def perf_metrics(
    mfu: float | None, step_seconds: float | None, tokens_per_second: float | None, samples_per_second: float | None
) -> dict[str, float]:
    """The metrics of a step or of several; unknown values are omitted."""
    values = {
        "perf/mfu": mfu,
        "perf/mfu_percent": None if mfu is None else 100 * mfu,
        "perf/step_time": step_seconds,
        "perf/steps_per_second": 1 / step_seconds if step_seconds else None,
        "perf/tokens_per_second": tokens_per_second,
        "perf/samples_per_second": samples_per_second,
    }
    return {name: value for name, value in values.items() if value is not None}


def record_metrics(record: dict[str, Any]) -> dict[str, float]:
    """The metrics of one record."""
    return perf_metrics(record["mfu"], record["step_seconds"], record["tokens_per_second"], record["samples_per_second"])


def total_metrics(totals: _flopmeter.StepTotals) -> dict[str, float]:
    """The metrics over several steps."""
    return perf_metrics(totals.mfu, totals.step_seconds, totals.tokens_per_second, totals.samples_per_second)


class Window:
    """The train steps that finished since the last call of take() or metrics()."""

    def __init__(self, monitor: Monitor) -> None:
        self._core = monitor.core
        self._queue = self._core.subscribe(8192)
        self._taken = 0
        self.last: str | None = None  # the newest record, as JSON

    def take(self, wait: float = _WAIT_SECONDS) -> _flopmeter.StepTotals:
        """The totals of all steps that finished up to now, so that no row shows the steps of another."""
        status = self._core.status()
        due = status["steps"] - status["dropped"]
        deadline = time.monotonic() + wait
        self._core.flush()
        totals = _flopmeter.StepTotals()
        while self._taken + self._queue.dropped < due:
            record = self._queue.next(max(0.0, deadline - time.monotonic()))
            if record is None:
                break
            self._taken += 1
            self.last = record
            totals.add(record)
        return totals

    def metrics(self, wait: float = _WAIT_SECONDS) -> dict[str, float]:
        """The metrics over these steps; unknown values are omitted."""
        return total_metrics(self.take(wait))
