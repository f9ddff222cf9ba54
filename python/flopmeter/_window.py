# SPDX-License-Identifier: Apache-2.0
"""Means over the steps since one last looked, for loggers that ask now and then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flopmeter._monitor import Monitor

_WAIT_SECONDS = 0.05  # the writing thread looks every 20 ms; waited for only where nothing has come yet


def _mean_over_time(records: list[dict[str, Any]], name: str) -> float | None:
    """The mean of a rate, each step weighted by its time; None where no step knows it."""
    known = [r for r in records if r[name] is not None]
    seconds = sum(r["step_seconds"] for r in known)
    return sum(r[name] * r["step_seconds"] for r in known) / seconds if seconds else None


class Window:
    """The train steps that finished since the last call of metrics()."""

    def __init__(self, monitor: Monitor) -> None:
        self._queue = monitor.subscribe(8192)

    def metrics(self, wait: float = _WAIT_SECONDS) -> dict[str, float]:
        """The six perf/* values; what is not known is left out."""
        records = []
        text = self._queue.next(wait)
        while text is not None:
            record = json.loads(text)
            if record["tag"] == "train":
                records.append(record)
            text = self._queue.next(0)
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
