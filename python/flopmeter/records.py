# SPDX-License-Identifier: Apache-2.0
"""Records for loggers in Python.  A daemon thread reads them; the training thread never waits."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from flopmeter import _flopmeter
from flopmeter.guard import describe_error
from flopmeter.log import log_once
from flopmeter.metrics import record_metrics

Sink = Callable[[dict[str, Any]], None]
_POLL_SECONDS = 0.25
_MOST_FAILURES = 3
_sinks: dict[str, Sink] = {}


def register_sink(name: str, write: Sink) -> None:
    """Register the output ``sinks=["name"]``: ``write(record)`` gets each record as a dict, in a separate thread."""
    _sinks[name] = write


def take_python_sinks(named: dict[str, Any]) -> list[Sink]:
    """Removes the outputs that are written in Python from the options and returns them."""
    wanted = named.pop("sinks", None) or []
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    named["sink"] = [name for name in wanted if name not in _sinks]
    return [_sinks[name] for name in wanted if name in _sinks]


class WandbWriter:
    """Adds perf/* to the user's own W&B run.  Never passes step=, never starts or ends a run.

    A separate row would advance W&B's step, and a row that the user then logs with a smaller step= would be lost; so
    values join the user's next row unless ``own_rows`` is set.  With ``keep_all``, values that joined no row of the user
    become a row before the next values come: at most one per step, so that the user's step= is never exceeded.
    """

    def __init__(self, own_rows: bool, keep_all: bool = False) -> None:
        self._own_rows = own_rows
        self._keep_all = keep_all
        self._waits_at: int | None = None  # W&B's step at which values wait for a row
        self._known: Any = None

    def __call__(self, record: dict[str, Any]) -> None:
        self.log(record_metrics(record), record["step"])

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
    """Logs perf/* to the MLflow run that is active when the monitor starts: MLflow's active run is per thread."""

    def __init__(self) -> None:
        mlflow: Any = sys.modules.get("mlflow")
        run = mlflow.active_run() if mlflow is not None else None
        self._run_id = run.info.run_id if run is not None else None

    def __call__(self, record: dict[str, Any]) -> None:
        if self._run_id is not None:
            sys.modules["mlflow"].log_metrics(record_metrics(record), step=record["step"], run_id=self._run_id)


class RecordThread:
    """Passes each record to the writers.  A writer that fails three times in a row is dropped."""

    def __init__(self, core: _flopmeter.Monitor, wandb: bool | None, mlflow: bool, sinks: Iterable[Sink]) -> None:
        self._writers: list[Sink] = list(sinks)
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

    def _write(self, writer: Sink, record: dict[str, Any]) -> None:
        try:
            writer(record)
            self._failures[writer] = 0
        except Exception as error:  # a logger must not end the run
            self._failures[writer] = self._failures.get(writer, 0) + 1
            if self._failures[writer] >= _MOST_FAILURES:
                self._writers.remove(writer)
                log_once(f"an output is dropped after {_MOST_FAILURES} failures: {describe_error(error)}")

    def join(self, seconds: float) -> None:
        """Wait, at most that long, until all records are passed on."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)
