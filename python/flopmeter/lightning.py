# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.lightning.Callback()`` for Lightning: ``Trainer(callbacks=[flopmeter.lightning.Callback()])``."""

from __future__ import annotations

import os
from typing import Any

try:
    from lightning.pytorch.callbacks import Callback as _Base
except ImportError:  # the older package
    from pytorch_lightning.callbacks import Callback as _Base  # type: ignore[assignment]

from flopmeter import _flopmeter
from flopmeter._batch import Batch, look_at
from flopmeter._monitor import Monitor
from flopmeter._setup import run_directory
from flopmeter._window import Window

_DATA, _FORWARD, _BACKWARD, _OPTIMIZER, _EVALUATION = (
    _flopmeter.phases[name] for name in ("data", "forward", "backward", "optimizer", "evaluation")
)


class Callback(_Base):
    """Watches a Trainer and logs perf/* to its loggers.

    Takes the arguments of Monitor; the run directory is ``<default_root_dir>/perf_monitor`` unless given.
    A step ends with the optimizer's step, so gradient accumulation gives one record with its micro-steps.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__()
        self._directory = directory
        self._options = options
        self._window: Window | None = None
        self._open = False
        self._global_step = 0
        self.monitor: Monitor | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # Lightning tells the phases itself: forward and backward run inside the optimizer's step there.
        own = {"wandb": False, "find_phases": False, "log_interval": max(1, trainer.log_every_n_steps)}
        options = {**own, **self._options}
        directory = self._directory or run_directory(trainer.default_root_dir)
        options.setdefault("rank", trainer.global_rank)
        options.setdefault("world_size", trainer.world_size)
        self.monitor = Monitor(directory, model=pl_module, **options)
        self._window = Window(self.monitor)
        self._wait()

    def _wait(self) -> None:
        """What comes before the next batch is a wait for data."""
        if self.monitor is not None:
            self.monitor._core.begin_phase(_DATA)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self.monitor is None:
            return
        core = self.monitor._core
        core.end_phase(_DATA)
        seen = look_at(batch) or Batch()
        if self._open:
            core.micro_step(*seen)
        else:
            self._global_step = trainer.global_step
            self._open = True
            core.begin_step(*seen, trainer.global_step + 1, trainer.current_epoch, _flopmeter.tags["train"])
        core.begin_phase(_FORWARD)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        if self.monitor is not None:
            self.monitor._core.end_phase(_FORWARD)
            self.monitor._core.begin_phase(_BACKWARD)

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        if self.monitor is not None:
            self.monitor._core.end_phase(_BACKWARD)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        if self.monitor is not None:
            self.monitor._core.begin_phase(_OPTIMIZER)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.monitor is None:
            return
        if trainer.global_step != self._global_step:
            self.monitor._core.end_phase(_OPTIMIZER)
            self.monitor.end_step(loss=outputs.get("loss") if isinstance(outputs, dict) else outputs)
            self._open = False
            if trainer.global_step % trainer.log_every_n_steps == 0 and self._window is not None:
                metrics = self._window.metrics()
                for logger in trainer.loggers:
                    logger.log_metrics(metrics, step=trainer.global_step)
        self._wait()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self.monitor is not None and not self._open:
            self.monitor.abandon_step()  # the wait that was no wait for data
            self.monitor._core.begin_phase(_EVALUATION)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self.monitor is not None and not self._open:
            self.monitor._core.end_phase(_EVALUATION)
            self._wait()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._finish()

    def _finish(self) -> None:
        if self.monitor is not None:
            self.monitor.abandon_step()
            self.monitor.finish()
