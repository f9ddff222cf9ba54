# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.integrations.hf.Callback()`` for the Hugging Face Trainer: ``Trainer(..., callbacks=[flopmeter.integrations.hf.Callback()])``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from threading import get_ident
from types import FrameType
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import DefaultFlowCallback

from flopmeter.torch.loader import Fetch, Loaders
from flopmeter.monitor import Monitor
from flopmeter.config import run_directory
from flopmeter.window import Window


def _callers(frame: FrameType | None) -> Iterator[Any]:
    """The objects whose methods led here, innermost first: a callback is given neither its handler nor the Trainer."""
    while frame is not None:
        yield frame.f_locals.get("self")
        frame = frame.f_back


class Callback(TrainerCallback):
    """Watches a Trainer and adds perf/* to what it logs, so that every reporter (W&B, TensorBoard, …) shows it.

    Takes the arguments of Monitor; the run directory is ``<output_dir>/perf_monitor`` unless given.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._directory = directory
        self._options = options
        self._between: list[str] = []  # phases before the next step, the open one first
        self._thread = 0
        self._window: Window | None = None
        self._loaders: Loaders | None = None
        self.monitor: Monitor | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self._finish()  # of a training that ended by an exception
        callers = list(_callers(sys._getframe(1)))
        self._go_first(next((each.callbacks for each in callers if hasattr(each, "callbacks")), [self]))
        wrapped = next((each.model_wrapped for each in callers if hasattr(each, "model_wrapped")), model)
        if hasattr(wrapped, "_orig_mod"):
            model = wrapped  # compiled code calls no hooks of the module inside
        options = {"wandb": False, "log_interval": max(1, int(state.logging_steps)), **self._options}
        self.monitor = Monitor(self._directory or run_directory(args.output_dir), model=model, **options)
        self._window = Window(self.monitor)
        self._thread = get_ident()
        self._loaders = Loaders(self._fetch)
        if getattr(args, "eval_on_start", False):
            self._rest("evaluation")

    def _go_first(self, callbacks: list[Any]) -> None:
        """Before the reporters, which would not see what is added after them, and after the flow's own decisions."""
        callbacks.remove(self)
        flow = [i for i, each in enumerate(callbacks) if isinstance(each, DefaultFlowCallback)]
        callbacks.insert(flow[0] + 1 if flow else 0, self)

    def _fetch(self, fetch: Fetch, iterator: Any) -> Any:
        aside = self._between and self._between[0] != "other"
        if aside or self.monitor is None or get_ident() != self._thread:
            return fetch(iterator)
        with self.monitor.phase("data"):
            return fetch(iterator)

    def _rest(self, *asides: str) -> None:
        """Between steps: first what makes records of its own, then time that the next step is given."""
        assert self.monitor is not None
        self._between = [*asides, "other"]
        self.monitor.phase(self._between[0]).__enter__()

    def _end_rest(self, name: str) -> None:
        """The phase ``name`` is over, and those before it that told us nothing."""
        while self.monitor is not None and name in self._between:
            self.monitor.phase(self._between.pop(0)).__exit__()
            if self._between:
                self.monitor.phase(self._between[0]).__enter__()

    def _rest_as_decided(self, control: Any) -> None:
        wanted = (("evaluation", control.should_evaluate), ("checkpoint", control.should_save))
        self._rest(*(name for name, comes in wanted if comes))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is not None and not self._between:
            self._rest()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is not None and (control.should_evaluate or control.should_save):
            self.monitor.abandon_step()  # the loader's end belongs to no step
            self._rest_as_decided(control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is not None:
            self._end_rest("other")
            self.monitor.begin_step(step=state.global_step + 1, epoch=state.epoch)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is not None:
            self.monitor.end_step()
            self._rest_as_decided(control)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_rest("evaluation")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_rest("checkpoint")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if self._window is None or logs is None or "loss" not in logs:
            return
        metrics = self._window.metrics()
        logs.update(metrics)
        if state.log_history:
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._finish()

    def _finish(self) -> None:
        self._between = []
        if self._loaders is not None:
            self._loaders.restore()
            self._loaders = None
        if self.monitor is not None:
            self.monitor.abandon_step()
            self.monitor.finish()
