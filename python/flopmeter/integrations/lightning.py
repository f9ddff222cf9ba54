# SPDX-License-Identifier: Apache-2.0
"""``Trainer(callbacks=[flopmeter.integrations.lightning.Callback()])`` for Lightning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

try:
    from lightning.pytorch.callbacks import Callback as _Base
except ImportError:  # the older package
    from pytorch_lightning.callbacks import Callback as _Base  # type: ignore[assignment]

from flopmeter.batch import combined, inspect
from flopmeter.integrations.kit import Integration, as_count, as_float, guarded, log_once


def _described(batch: Any, loaders: Any) -> Any:
    """The batch, or the sum of its parts if it was combined from several loaders."""
    if isinstance(loaders, Mapping) and type(batch) is dict:
        parts = [_described(batch.get(name), loader) for name, loader in loaders.items()]
    elif isinstance(loaders, (list, tuple)) and type(batch) in (list, tuple):
        parts = [_described(*each) for each in zip(batch, loaders)]
    else:
        return batch
    return combined([found for part in parts if (found := inspect(part)[0]) is not None])


def _reported(integration: Integration, activity: str, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Report the activity around a call of the original."""
    integration.emit(f"{activity}_begin")
    try:
        return original(*args, **kwargs)
    finally:
        integration.emit(f"{activity}_end")


def _total_steps(trainer: Any, pl_module: Any) -> int | None:
    try:
        # Lightning counts the steps of all optimizers if the module calls them itself.
        return as_count(trainer.estimated_stepping_batches) if pl_module.automatic_optimization else None
    except Exception:  # it may ask loaders of the program for their length
        return None


class Callback(Integration, _Base):
    """Monitors a Trainer and logs perf/* to its loggers.

    Takes the arguments of Monitor; the run directory is ``<default_root_dir>/perf_monitor`` by default.
    A step ends with the optimizer's step, so gradient accumulation gives one record with its micro-batches.
    """

    @guarded
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # Lightning reports the phases itself: forward and backward run inside the optimizer's step there.
        self.start(
            trainer.default_root_dir,
            model=pl_module,
            model_hooks=False,
            step=trainer.fit_loop.epoch_loop._batches_that_stepped + 1,
            log_interval=max(1, trainer.log_every_n_steps),
            total_steps=_total_steps(trainer, pl_module),
            rank=trainer.global_rank,
            world_size=trainer.world_size,
        )
        self.patch(trainer, "save_checkpoint", partial(partial, _reported, self, "checkpoint"))  # trainers are pickled
        if not pl_module.automatic_optimization:
            self.patch(torch.Tensor, "backward", self._backward)

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _reported(self, "backward", original, *args, **kwargs)  # a method, unlike partial

    @guarded
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.stop()

    @guarded
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.stop()

    @guarded
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.emit(
            "batch_begin",
            batch=_described(batch, trainer.train_dataloader),
            # Otherwise each optimizer counts in the global step, and the step tracker numbers the steps.
            step=trainer.global_step + 1 if pl_module.automatic_optimization else None,
            epoch=trainer.current_epoch,
        )

    @guarded
    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._end_forward(pl_module)
        self.emit("backward_begin")

    @guarded
    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self.emit("backward_end")

    @guarded
    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._end_forward(pl_module)
        self.emit("optimizer_begin")

    def _end_forward(self, pl_module: Any) -> None:
        """A module that calls backward and optimizers itself may go on: everything else is its forward."""
        if pl_module.automatic_optimization:
            self.emit("forward_end")

    @guarded
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        automatic = pl_module.automatic_optimization
        loss = as_float(outputs.get("loss") if isinstance(outputs, Mapping) else outputs)
        if loss is not None and automatic:
            loss *= trainer.accumulate_grad_batches  # by which Lightning has divided it
        stepped = "step_ended" in self.emit("batch_end", loss=loss)
        logs = stepped or not automatic  # as Lightning does with its own values, and at the same step
        if logs and trainer.loggers and trainer._logger_connector.should_update_logs:
            metrics = self.metrics()
            for logger in trainer.loggers if metrics else ():
                logger.log_metrics(metrics, step=trainer.fit_loop.epoch_loop._batches_that_stepped)

    @guarded
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.emit("epoch_end")

    @guarded
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if "step_discarded" in self.emit("evaluation_begin"):
            log_once("a validation began inside a gradient accumulation: that step gets no record")

    @guarded
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.emit("evaluation_end")
