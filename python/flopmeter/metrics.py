# SPDX-License-Identifier: Apache-2.0
"""The six ``perf/*`` metrics, of one record or of the steps since the last log."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

_WAIT_SECONDS = 0.05  # maximum time to wait for the writer thread to flush


def _weighted_mean(records: Sequence[dict[str, Any]], name: str) -> float | None:
    """The mean of a rate, each step weighted by its time; None if no step knows it."""
    known = [record for record in records if record[name] is not None]
    seconds = sum(record["step_seconds"] for record in known)
    return sum(record[name] * record["step_seconds"] for record in known) / seconds if seconds else None


def perf_metrics(*records: dict[str, Any]) -> dict[str, float]:
    """The metrics of one record, or the means of several; unknown values are omitted."""
    if not records:
        return {}
    step_time = sum(record["step_seconds"] for record in records) / len(records)
    mfu = _weighted_mean(records, "mfu")
    values = {
        "perf/mfu": mfu,
        "perf/mfu_percent": None if mfu is None else 100 * mfu,
        "perf/step_time": step_time,
        "perf/steps_per_second": 1 / step_time if step_time else None,
        "perf/tokens_per_second": _weighted_mean(records, "tokens_per_second"),
        "perf/samples_per_second": _weighted_mean(records, "samples_per_second"),
    }
    return {name: value for name, value in values.items() if value is not None}


class Window:
    """The train steps that finished since the last call of metrics()."""

    def __init__(self, monitor: Monitor) -> None:
        self._core = monitor.core
        self._queue = self._core.subscribe(8192)
        self._taken = 0

    def _records(self, wait: float) -> list[dict[str, Any]]:
        """All records that finished up to now, so that no row shows the steps of another."""
        status = self._core.status()
        due = status["steps"] - status["dropped"]
        deadline = time.monotonic() + wait
        self._core.flush()
        records = []
        while self._taken + self._queue.dropped < due:
            text = self._queue.next(max(0.0, deadline - time.monotonic()))
            if text is None:
                break
            self._taken += 1
            records.append(json.loads(text))
        return records

    def take(self, wait: float = _WAIT_SECONDS) -> list[dict[str, Any]]:
        """The records of these steps."""
        return [record for record in self._records(wait) if record["tag"] == "train"]

    def metrics(self, wait: float = _WAIT_SECONDS) -> dict[str, float]:
        """The metrics over these steps; unknown values are omitted."""
        return perf_metrics(*self.take(wait))
