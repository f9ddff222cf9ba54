# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.hf.Callback()`` for the Hugging Face Trainer: ``Trainer(..., callbacks=[flopmeter.hf.Callback()])``."""

from __future__ import annotations

import inspect
import os
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import DefaultFlowCallback

from flopmeter._monitor import Monitor
from flopmeter._setup import run_directory
from flopmeter._window import Window


class Callback(TrainerCallback):
    """Watches a Trainer and adds perf/* to what it logs, so that every reporter (W&B, TensorBoard, …) shows it.

    Takes the arguments of Monitor; the run directory is ``<output_dir>/perf_monitor`` unless given.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._directory = directory
        self._options = options
        self._between: list[str] = []  # phases that are still to come before the next step
        self._window: Window | None = None
        self.monitor: Monitor | None = None

    def _go_first(self, frame: Any) -> None:
        """Before the reporters, which would not see what is added after them, and after the flow's own decisions."""
        caller = frame.f_back if frame is not None else None
        while caller is not None and not hasattr(caller.f_locals.get("self"), "callbacks"):
            caller = caller.f_back
        if caller is None:
            return
        callbacks = caller.f_locals["self"].callbacks
        callbacks.remove(self)
        flow = [i for i, each in enumerate(callbacks) if isinstance(each, DefaultFlowCallback)]
        callbacks.insert(flow[0] + 1 if flow else 0, self)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self._go_first(inspect.currentframe())
        options = {"wandb": False, "log_interval": max(1, int(state.logging_steps)), **self._options}
        directory = self._directory or run_directory(args.output_dir)
        self.monitor = Monitor(directory, model=model, **options)
        self._window = Window(self.monitor)

    def _begin_between(self) -> None:
        if self.monitor is not None:
            self.monitor.phase(self._between[0]).__enter__()

    def _end_between(self, name: str) -> None:
        """The phase ``name`` is over, and those before it that told us nothing."""
        while self.monitor is not None and name in self._between:
            ended = self._between.pop(0)
            self.monitor.phase(ended).__exit__()
            if self._between:
                self._begin_between()
            if ended == name:
                return

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self._between:
            self._between = ["data"]
            self._begin_between()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is None:
            return
        self._end_between("data")
        self._between = []
        self.monitor.begin_step(step=state.global_step + 1, epoch=state.epoch)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is None:
            return
        self.monitor.end_step()
        self._between = [
            name
            for name, comes in (("evaluation", control.should_evaluate), ("checkpoint", control.should_save), ("data", True))
            if comes
        ]
        self._begin_between()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_between("evaluation")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_between("checkpoint")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if self._window is None or logs is None or "loss" not in logs:
            return
        metrics = self._window.metrics()
        logs.update(metrics)
        if state.log_history:
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is not None:
            self.monitor.abandon_step()
            self.monitor.finish()
