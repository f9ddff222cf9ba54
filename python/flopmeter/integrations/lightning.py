# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.integrations.lightning.Callback()`` for Lightning: ``Trainer(callbacks=[flopmeter.integrations.lightning.Callback()])``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from functools import partial
from threading import get_ident
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

try:
    from lightning.pytorch.callbacks import Callback as _Base
except ImportError:  # the older package
    from pytorch_lightning.callbacks import Callback as _Base  # type: ignore[assignment]

from flopmeter import _flopmeter
from flopmeter.batch import Batch, look_at
from flopmeter.torch.loader import Fetch, Loaders
from flopmeter.monitor import Monitor
from flopmeter.config import number_of, run_directory, say
from flopmeter.window import Window

_FORWARD, _BACKWARD, _OPTIMIZER, _EVALUATION, _CHECKPOINT, _OTHER = (
    _flopmeter.phases[name] for name in ("forward", "backward", "optimizer", "evaluation", "checkpoint", "other")
)
_TRAIN = _flopmeter.tags["train"]


def _see(batch: Any, loaders: Any) -> Batch | None:
    """What a batch tells; one that was combined from several loaders tells the sum of its parts."""
    if isinstance(loaders, Mapping) and isinstance(batch, Mapping):
        parts = [_see(batch.get(name), loader) for name, loader in loaders.items()]
    elif isinstance(loaders, (list, tuple)) and isinstance(batch, (list, tuple)):
        parts = [_see(*each) for each in zip(batch, loaders)]
    else:
        return look_at(batch)
    known = [part for part in parts if part is not None]
    samples = sum(len(part.lengths) if part.samples is None else part.samples for part in known)
    lengths = [length for part in known for length in part.lengths]
    padded = {part.padded_length for part in known}
    images = [image for part in known for image in part.images]
    return Batch(samples, None, lengths, padded.pop() if len(padded) == 1 else 0, images) if known else None


def _stand_in(owner: Any, name: str, function: Callable[..., Any]) -> Callable[[], None]:
    """Replace ``owner.name``; the result takes that back."""
    original = getattr(owner, name)
    setattr(owner, name, function)
    return partial(setattr, owner, name, original)


class Callback(_Base):
    """Watches a Trainer and logs perf/* to its loggers.

    Takes the arguments of Monitor; the run directory is ``<default_root_dir>/perf_monitor`` unless given.
    A step ends with the optimizer's step, so gradient accumulation gives one record with its micro-steps.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__()
        self._directory = directory
        self._options = options
        self._core: Any = None
        self._window: Any = None
        self._undo: ExitStack | None = None  # of what stands in for others while a fit is watched
        self._thread = 0
        self._automatic = True  # Lightning calls backward and the optimizer
        self._steps = 0  # batches with an optimizer step
        self._open = False  # a step is; neither open nor resting is what remains of a step that was given up
        self._resting = False  # between steps
        self._asides = 0  # evaluations and checkpoints that run now
        self._inside: list[int] = []  # phases of the open step, outermost first
        self._in_batch = False
        self._stepped = False  # an optimizer did in this batch
        self.monitor: Monitor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **Callback(self._directory, **self._options).__dict__}  # a copy watches nothing

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.on_train_end(trainer, pl_module)  # of a fit that did not come to it
        # Lightning tells the phases itself: forward and backward run inside the optimizer's step there.
        own = {"wandb": False, "find_phases": False, "log_interval": max(1, trainer.log_every_n_steps)}
        options = {**own, "rank": trainer.global_rank, "world_size": trainer.world_size, **self._options}
        self.monitor = Monitor(self._directory or run_directory(trainer.default_root_dir), model=pl_module, **options)
        if not self.monitor.enabled:
            return
        self._core = self.monitor._core
        self._window = Window(self.monitor)
        self._thread = get_ident()
        self._automatic = pl_module.automatic_optimization
        self._steps = trainer.fit_loop.epoch_loop._batches_that_stepped  # the global step counts each optimizer's
        self._undo = ExitStack()
        self._undo.callback(Loaders(self._fetch).restore)
        self._undo.callback(register_optimizer_step_pre_hook(self._optimizer_begins).remove)
        self._undo.callback(register_optimizer_step_post_hook(self._optimizer_ended).remove)
        self._undo.callback(_stand_in(trainer, "save_checkpoint", partial(self._save_checkpoint, trainer.save_checkpoint)))
        if not self._automatic:
            call = partial(self._call_backward, torch.Tensor.backward)
            self._undo.callback(_stand_in(torch.Tensor, "backward", lambda *args, **kwargs: call(*args, **kwargs)))
        self._rest()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.on_train_end(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self._undo is not None and self.monitor is not None:
            self._undo.close()
            self._undo = None
            self._give_up()
            self._resting, self._in_batch, self._asides = False, False, 0
            self.monitor.finish()

    def _rest(self) -> None:
        self._resting = True  # time between steps is given to the next one
        self._core.begin_phase(_OTHER)

    def _give_up(self) -> None:
        """No record of what is open."""
        if self._open or self._resting or self._asides:
            self._core.abandon_step()
        self._open = False
        self._inside.clear()

    def _enter(self, phase: int) -> None:
        if self._open and phase not in self._inside:
            self._inside.append(phase)
            self._core.begin_phase(phase)

    def _leave(self, phase: int) -> None:
        while phase in self._inside:
            self._core.end_phase(self._inside.pop())

    def _switch(self, phase: int) -> None:
        """A module that calls backward and optimizers itself may go on: all that is neither is its forward."""
        self._leave(_OPTIMIZER)
        if self._automatic:
            self._leave(_FORWARD)
        self._enter(phase)

    def _fetch(self, fetch: Fetch, iterator: Any) -> Any:
        ours = (self._open or self._resting) and not self._asides and get_ident() == self._thread
        with self.monitor.phase("data") if ours and self.monitor else nullcontext():
            return fetch(iterator)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._undo is None:
            return
        self._in_batch, self._stepped = True, False
        self._steps = trainer.global_step if self._automatic else self._steps
        seen = _see(batch, trainer.train_dataloader)
        if seen is None:
            say("the batch does not tell samples or tokens; their rates stay empty")
        if self._open:
            self._core.micro_batch(*(seen or Batch()))
        elif self._resting:
            self._core.end_phase(_OTHER)
            self._resting, self._open = False, True
            self._core.begin_step(*(seen or Batch()), self._steps + 1, trainer.current_epoch, _TRAIN)
        self._enter(_FORWARD)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._switch(_BACKWARD)

    def _call_backward(self, backward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        unseen = self._open and _BACKWARD not in self._inside and get_ident() == self._thread
        with self.monitor.phase("backward") if unseen and self.monitor else nullcontext():
            return backward(*args, **kwargs)

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._leave(_BACKWARD)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._stepped = True  # even where no torch optimizer is called, as with gradients that are not finite
        self._switch(_OPTIMIZER)

    def _optimizer_begins(self, _optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        has_closure = len(args) > 1 or kwargs.get("closure") is not None  # forward and backward run inside
        if not has_closure and get_ident() == self._thread:
            self._enter(_OPTIMIZER)

    def _optimizer_ended(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if get_ident() == self._thread:
            self._stepped = True
            self._leave(_OPTIMIZER)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not self._in_batch or self.monitor is None:
            return  # the loader gave None
        self._in_batch = False
        while self._inside:
            self._leave(self._inside[0])
        stepped = trainer.global_step != self._steps if self._automatic else self._stepped
        if stepped:
            self._steps += 1
            if self._open:
                loss = number_of(outputs.get("loss") if isinstance(outputs, Mapping) else outputs)
                if loss is not None and self._automatic:
                    loss *= trainer.accumulate_grad_batches  # by which Lightning has divided it
                self._open = False
                self.monitor.end_step(loss=loss)
            self._rest()
        logs = stepped or not self._automatic  # as Lightning does with its own values, and at the same step
        if logs and trainer.loggers and trainer._logger_connector.should_update_logs:
            metrics = self._window.metrics()
            for logger in trainer.loggers if metrics else ():
                logger.log_metrics(metrics, step=trainer.fit_loop.epoch_loop._batches_that_stepped)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._in_batch:  # it was skipped with the rest of the epoch, and so are gradients collected before it
            self._in_batch = False
            self._give_up()
            self._rest()

    def _begin_aside(self, phase: int) -> None:
        """Between steps, an evaluation or a checkpoint is a record of its own."""
        if self._undo is not None:
            if self._resting and not self._asides:
                self._give_up()
            self._asides += 1
            self._core.begin_phase(phase)

    def _end_aside(self, phase: int) -> None:
        if self._undo is not None:
            self._core.end_phase(phase)
            self._asides -= 1
            if self._resting and not self._asides:
                self._rest()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._open:  # its FLOPs could not be told from those of the validation
            say("validation in the middle of a gradient accumulation: that step gets no record")
            self._give_up()
        self._begin_aside(_EVALUATION)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._end_aside(_EVALUATION)

    def _save_checkpoint(self, save: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._begin_aside(_CHECKPOINT)
        try:
            return save(*args, **kwargs)
        finally:
            self._end_aside(_CHECKPOINT)
