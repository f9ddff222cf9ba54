# SPDX-License-Identifier: Apache-2.0
"""``Trainer(..., callbacks=[flopmeter.integrations.hf.Callback()])`` for the Hugging Face Trainer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import DefaultFlowCallback

from flopmeter.integrations.kit import Integration, as_count, guarded


def _callers(frame: FrameType | None) -> Iterator[Any]:
    """The objects whose methods led here, innermost first: a callback gets neither its handler nor the Trainer."""
    while frame is not None:
        # Of methods only: a read of locals keeps what they hold alive until the function returns.
        if frame.f_code.co_varnames[:1] == ("self",):
            yield frame.f_locals.get("self")
        frame = frame.f_back


class Callback(Integration, TrainerCallback):
    """Monitors a Trainer and adds perf/* to its logs, so that every reporter (W&B, TensorBoard, …) shows them.

    Takes the arguments of Monitor; the run directory is ``<output_dir>/perf_monitor`` by default.
    """

    _generates = False  # the Trainer generates before it updates
    _next: tuple[int, Any] | None = None  # number and epoch of a step that has not begun

    @guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        callers = list(_callers(sys._getframe(1)))
        self._go_first(next((each.callbacks for each in callers if hasattr(each, "callbacks")), [self]))
        wrapped = next((each.model_wrapped for each in callers if hasattr(each, "model_wrapped")), model)
        if hasattr(wrapped, "_orig_mod"):
            model = wrapped  # compiled code calls no hooks of the module inside
        self.start(
            args.output_dir, model=model, log_interval=max(1, int(state.logging_steps)), total_steps=as_count(state.max_steps)
        )
        trainer = next((each for each in callers if hasattr(each, "_prepare_inputs")), None)
        self._generates = hasattr(trainer, "_calculate_rewards")
        if self._generates:
            self.patch(trainer, "_prepare_inputs", self._begin_after)
        if getattr(args, "eval_on_start", False):
            self.emit("evaluation_begin")

    def _go_first(self, callbacks: list[Any]) -> None:
        """Before the reporters, which would not see later additions, and after the flow's own decisions."""
        callbacks.remove(self)
        flow = [i for i, each in enumerate(callbacks) if isinstance(each, DefaultFlowCallback)]
        callbacks.insert(flow[0] + 1 if flow else 0, self)

    def _emit_what_follows(self, control: Any) -> None:
        """The Trainer does not report where an evaluation or a checkpoint begins: it begins with its decision."""
        if control.should_evaluate:
            self.emit("evaluation_begin")
        elif control.should_save:
            self.emit("checkpoint_begin")

    @guarded
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.emit("evaluation_end")  # of eval_on_start, if it was not reported
        self.emit("loop_begin")

    @guarded
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._generates:
            self._next = state.global_step + 1, state.epoch
        elif self.monitor is not None:
            self.monitor.begin_step(step=state.global_step + 1, epoch=state.epoch)

    def _begin_after(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Trainers of TRL that generate do so inside the Trainer's step, where they prepare its first batch."""

        def prepare(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._begin_next()
            return result

        return prepare

    @guarded
    def _begin_next(self) -> None:
        if self._next is not None and self.monitor is not None:
            self.monitor.begin_step(step=self._next[0], epoch=self._next[1])
        self._next = None

    @guarded
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.monitor is not None:
            self.monitor.end_step()
            self._emit_what_follows(control)

    @guarded
    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._emit_what_follows(control)

    @guarded
    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.emit("evaluation_end")
        if control.should_save:
            self.emit("checkpoint_begin")

    @guarded
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.emit("checkpoint_end")

    @guarded
    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs is None or "loss" not in logs:
            return
        metrics = self.metrics()
        logs.update(metrics)
        if state.log_history:
            state.log_history[-1].update(metrics)

    @guarded
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.stop()
