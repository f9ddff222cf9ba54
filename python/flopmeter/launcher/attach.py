# SPDX-License-Identifier: Apache-2.0
"""The monitor of a loop that does not know of it: what ``flopmeter run`` starts when a model is found.

A step lasts from the end of the one before to the last of its optimizer steps.  How many these are is learnt from the
first step, which ends when the next one begins: with the loader's next batch or, without a loader, the next forward.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from flopmeter import _flopmeter, config
from flopmeter.torch.adapter import torch_adapter
from flopmeter.batch import Batch, look_at
from flopmeter.torch.hooks import TorchHooks
from flopmeter.torch.loader import Fetch, Loaders
from flopmeter.monitor import Monitor

_DATA, _EVALUATION, _OTHER = (_flopmeter.phases[name] for name in ("data", "evaluation", "other"))
_NOTHING = Batch()
_MOST_OPTIMIZERS = 8  # that step for one batch of a loader; more mean that the loop does without it
# Optimizer steps in a row without a forward of the model after which another model is looked for.
_STRANGE_STEPS = 16
_FOREIGN_STEPS = 2  # of optimizers that have none of its parameters
_LONE_BACKWARDS = 64  # without any optimizer step, after which each is taken for a step


class Watcher(Monitor):
    """Makes steps of what the hooks see."""

    _automatic = True

    def __init__(self, model: Any, look_again: Callable[[], None], loader_seen: bool, lone: bool, **arguments: Any) -> None:
        self._look_again = look_again
        self._has_model = model is not None
        self._model = None if model is None else weakref.ref(model)
        self._expected = 0  # optimizer steps that make a step; 0: not known yet
        self._strange = 0  # optimizer steps since the model's last forward and the step's end
        self._foreign = 0  # of them: of another model's parameters
        self._backwards = _LONE_BACKWARDS if lone else 0  # while no optimizer ever stepped
        self._loader_seen = loader_seen
        self._alike: tuple[Any, Any] = (None, None)  # shape and dtype of the last batch, and what it told
        self._seen = _NOTHING
        self._thread = threading.get_ident()
        super().__init__(model=model, **arguments)
        self._loaders = Loaders(self.fetch) if self.enabled else None

    def _make_hooks(self, model: Any) -> TorchHooks:
        return TorchHooks(self, model, optimizers=model is not None)  # else who looked for one goes on to call for them

    def _begin(self, seen: Batch) -> None:
        if self._early:
            self._end_early()
        self._strange = self._foreign = self._optimizer_steps = 0
        if seen.lengths:
            self._core.begin_step(*seen, None, None, 0)
        else:
            self._core.begin(seen.samples, seen.tokens)
        self._open = True

    def _see(self, batch: Any) -> Batch:
        kwargs, args = batch
        alone = args[0] if len(args) == 1 and not kwargs else None
        alike = (getattr(alone, "shape", None), getattr(alone, "dtype", None))
        if alike != self._alike or alike[0] is None:  # nothing but a tensor tells by its shape alone
            self._alike = alike
            self._seen = look_at(batch) or _NOTHING
            if self._seen is _NOTHING:
                config.say("what the model is fed does not tell samples or tokens; their rates stay empty")
        return self._seen

    def _close(self) -> None:
        self._expected = self._optimizer_steps
        if self._device is not None or self._hooks is not None and self._hooks._guessed_backward:
            self.end_step()
        else:
            self._open = False
            self._core.end()
        self._begin_early()

    def _begin_early(self) -> None:
        self._early = True
        self._core.begin_phase(_OTHER)

    def _end_early(self) -> None:
        self._early = False
        self._core.end_phase(_OTHER)

    def _forward_begins(self, batch: Any) -> None:
        if self._evaluating:
            self._end_evaluation()
        if self._open and self._optimizer_steps and not self._loader_seen:
            self._close()
        if batch is None:
            if not self._open:
                self._has_batch = False
                self._begin(_NOTHING)
            return
        backward_begun = self._open and self._hooks is not None and self._hooks.has_begun()
        if backward_begun and not self._trained:
            self._end_lone_backward()
        if not self._open:
            self._has_batch = True
            self._begin(self._see(batch))
        elif backward_begun or not self._has_batch:
            self._has_batch = True
            self._core.micro_batch(*self._see(batch))

    def _end_lone_backward(self) -> None:
        """No optimizer of torch steps, or none that is seen: a loop of its own kind, or a compiled step."""
        self._backwards += 1
        if self._backwards == _LONE_BACKWARDS:
            config.say("no optimizer step is seen: each backward pass is taken for a step from now on")
            self.abandon_step()
        elif self._backwards > _LONE_BACKWARDS and self._open:
            self._optimizer_steps = 1
            self._close()

    def _evaluation_begins(self) -> None:
        if self._evaluating or self._open and not self._optimizer_steps:
            return  # inside a step it is the step's own work
        if self._open:
            self._close()
        if self._early:
            self._early = False
            self._core.abandon_step()
        self._evaluating = True
        self._core.begin_phase(_EVALUATION)

    def _optimizer_ended(self, optimizer: Any) -> None:
        self._optimizer_steps += 1
        self._trained = True
        if self._evaluating and self._owns(optimizer) and self._hooks is not None:
            self._hooks.frozen_mode = True  # that was no evaluation
            self._end_evaluation()
        if not self._has_model:
            if self._open:
                self.end_step()
            self._begin(_NOTHING)
        elif self._open:
            if self._optimizer_steps == self._expected:
                self._close()
            elif self._optimizer_steps == _MOST_OPTIMIZERS:
                self._loader_seen = False
        elif not self._evaluating:
            self._one_more_optimizer(optimizer)

    def _owns(self, optimizer: Any) -> bool:
        """Whether the optimizer is for parameters of the model."""
        model = None if self._model is None else self._model()
        own = set() if model is None else {id(each) for each in model.parameters()}
        return any(id(each) in own for group in optimizer.param_groups for each in group["params"])

    def _one_more_optimizer(self, optimizer: Any) -> None:
        """An optimizer stepped after the step had ended: one more belongs to a step, or the model is another."""
        self._expected += 1
        self._strange += 1
        self._foreign += not self._owns(optimizer)
        self._begin_early()
        if self._strange == _STRANGE_STEPS or self._foreign == _FOREIGN_STEPS:
            self._look_again()

    def fetch(self, fetch: Fetch, iterator: Any) -> Any:
        """The loader's next batch, and the wait for it."""
        if self._evaluating or threading.get_ident() != self._thread:
            return fetch(iterator)
        self._loader_seen = True
        if self._open and self._optimizer_steps and self._has_model:
            self._close()
        self._core.begin_phase(_DATA)
        try:
            return fetch(iterator)
        finally:
            self._core.end_phase(_DATA)

    def finish(self) -> None:
        if not self._finished and self.enabled:
            if self._loaders is not None:
                self._loaders.restore()
            if self._open and self._optimizer_steps:
                self.end_step()
            elif self._open or self._early:
                self.abandon_step()
            if not self.status["steps"]:
                config.say("no optimizer step was seen: there is nothing in the records")
        super().finish()


def start(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    look_again: Callable[[], None],
    loader_seen: bool,
    lone: bool,
) -> Watcher | None:
    """Watch the loop that calls ``model`` now; None where somebody watches already.  ``lone``: it has no optimizer."""
    others = config.active_monitors()
    if any(not each._automatic for each in others):
        return None
    for each in others:  # of a model that is trained no longer
        each.finish()
    torch_adapter()
    watcher = Watcher(model, look_again, loader_seen, lone)
    if not watcher.enabled:
        return None
    if watcher.rank == 0:
        what = "a loop by its optimizer alone" if model is None else config.model_name(model)
        config.say(f"watching {what}; records in {watcher.directory}")
    if model is None:
        watcher._begin(_NOTHING)
    elif watcher._hooks is not None:
        watcher._hooks.frozen_mode = not model.training
        watcher._hooks._forward_begins(model, args, kwargs)
    return watcher
