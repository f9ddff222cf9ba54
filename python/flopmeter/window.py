# SPDX-License-Identifier: Apache-2.0
"""Means over the steps since one last looked, for loggers that ask now and then."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

_WAIT_SECONDS = 0.05  # at most, where the writing thread is held up; it is told to flush


def _mean_over_time(records: list[dict[str, Any]], name: str) -> float | None:
    """The mean of a rate, each step weighted by its time; None where no step knows it."""
    known = [r for r in records if r[name] is not None]
    seconds = sum(r["step_seconds"] for r in known)
    return sum(r[name] * r["step_seconds"] for r in known) / seconds if seconds else None


class Window:
    """The train steps that finished since the last call of metrics()."""

    def __init__(self, monitor: Monitor) -> None:
        self._core = monitor._core
        self._queue = monitor.subscribe(8192)
        self._taken = 0

    def _records(self, wait: float) -> list[dict[str, Any]]:
        """All that finished up to now, so that no row shows the steps of another."""
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

    def metrics(self, wait: float = _WAIT_SECONDS) -> dict[str, float]:
        """The six perf/* values; what is not known is left out."""
        records = [record for record in self._records(wait) if record["tag"] == "train"]
        if not records:
            return {}
        step_time = sum(r["step_seconds"] for r in records) / len(records)
        mfu = _mean_over_time(records, "mfu")
        values = {
            "perf/mfu": mfu,
            "perf/mfu_percent": None if mfu is None else 100 * mfu,
            "perf/step_time": step_time,
            "perf/steps_per_second": 1 / step_time if step_time else None,
            "perf/tokens_per_second": _mean_over_time(records, "tokens_per_second"),
            "perf/samples_per_second": _mean_over_time(records, "samples_per_second"),
        }
        return {name: value for name, value in values.items() if value is not None}
