# SPDX-License-Identifier: Apache-2.0
"""Records on their way to loggers that live in Python.  A daemon thread pulls them; the training thread never waits."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from flopmeter import _flopmeter, config

_POLL_SECONDS = 0.25


def perf_metrics(record: dict[str, Any]) -> dict[str, float]:
    """The six perf/* values of a record; what is not known is left out."""
    seconds = record["step_seconds"]
    values = {
        "perf/mfu": record["mfu"],
        "perf/mfu_percent": None if record["mfu"] is None else 100 * record["mfu"],
        "perf/step_time": seconds,
        "perf/steps_per_second": 1 / seconds if seconds else None,
        "perf/tokens_per_second": record["tokens_per_second"],
        "perf/samples_per_second": record["samples_per_second"],
    }
    return {name: value for name, value in values.items() if value is not None}


class WandbWriter:
    """Adds perf/* to the user's own W&B run.  Never passes step=, never starts or ends a run.

    Rows of one's own move W&B's step on, and a row that the user then logs with a smaller step= would be lost; so
    values join the user's next row unless ``own_rows`` is asked for.  With ``keep_all`` values that no row of the
    user's took become one before the next values come: at most one a step, so that no step= of the user's is passed.
    """

    def __init__(self, own_rows: bool, keep_all: bool = False) -> None:
        self._own_rows = own_rows
        self._keep_all = keep_all
        self._waits_at: int | None = None  # W&B's step at which values wait for a row
        self._known: Any = None

    def __call__(self, record: dict[str, Any]) -> None:
        self.log(perf_metrics(record), record["step"])

    def log(self, values: dict[str, float], step: int) -> None:
        """Log values under the axis flopmeter/step."""
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is None or not values:
            return
        if run is not self._known:
            run.define_metric("flopmeter/step", hidden=True)
            run.define_metric("perf/*", step_metric="flopmeter/step")
            self._known = run
            self._waits_at = None
        if self._keep_all and self._waits_at == run.step:
            run.log({}, commit=True)
        run.log({**values, "flopmeter/step": step}, commit=self._own_rows)
        self._waits_at = run.step


class MlflowWriter:
    """Logs perf/* to the MLflow run that is active where the monitor starts: a run is active in its own thread only."""

    def __init__(self) -> None:
        mlflow: Any = sys.modules.get("mlflow")
        run = mlflow.active_run() if mlflow is not None else None
        self._run_id = run.info.run_id if run is not None else None

    def __call__(self, record: dict[str, Any]) -> None:
        if self._run_id is not None:
            sys.modules["mlflow"].log_metrics(perf_metrics(record), step=record["step"], run_id=self._run_id)


class RecordThread:
    """Hands each record to the writers.  A writer that fails three times in a row is dropped."""

    def __init__(
        self, core: _flopmeter.Monitor, wandb: bool | None, mlflow: bool, sinks: Iterable[Callable[[dict[str, Any]], None]]
    ) -> None:
        self._writers: list[Callable[[dict[str, Any]], None]] = list(sinks)
        if mlflow:
            self._writers.append(MlflowWriter())
        if wandb or wandb is None and "wandb" in sys.modules:
            self._writers.append(WandbWriter(own_rows=bool(wandb)))
        self._failures: dict[Any, int] = {}
        self._thread: threading.Thread | None = None
        if self._writers and core.enabled:
            self._queue = core.subscribe()
            self._thread = threading.Thread(target=self._run, name="flopmeter-records", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            text = self._queue.next(_POLL_SECONDS)
            if text is None:
                if self._queue.closed:
                    return
                continue
            record = json.loads(text)
            for writer in list(self._writers):
                self._write(writer, record)

    def _write(self, writer: Callable[[dict[str, Any]], None], record: dict[str, Any]) -> None:
        try:
            writer(record)
            self._failures[writer] = 0
        except Exception as error:  # a logger must not end the run
            self._failures[writer] = self._failures.get(writer, 0) + 1
            if self._failures[writer] >= 3:
                self._writers.remove(writer)
                config.say(f"an output is dropped after three failures: {type(error).__name__}: {error}")

    def join(self, seconds: float) -> None:
        """Wait, not for longer than that, until what was recorded is handed over."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)
