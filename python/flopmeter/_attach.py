# SPDX-License-Identifier: Apache-2.0
"""The monitor of a loop that does not know of it: what ``flopmeter run`` starts when a model is found.

A step lasts from the end of the one before to the last of its optimizer steps.  How many these are is learnt from the
first step, which ends when the next one begins: with the loader's next batch or, without a loader, the next forward.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from flopmeter import _flopmeter, _setup
from flopmeter._adapter import torch_adapter
from flopmeter._batch import Batch, look_at
from flopmeter._hooks import TorchHooks
from flopmeter._loaders import Fetch, Loaders
from flopmeter._monitor import Monitor

_DATA, _EVALUATION, _OTHER = (_flopmeter.phases[name] for name in ("data", "evaluation", "other"))
_NOTHING = Batch()
_STRANGE_STEPS = 16  # optimizer steps without a forward of the model after which another model is looked for


class Watcher(Monitor):
    """Makes steps of what the hooks see."""

    _automatic = True

    def __init__(self, model: Any, look_again: Callable[[], None], **arguments: Any) -> None:
        self._look_again = look_again
        self._has_model = model is not None
        self._expected = 0  # optimizer steps that make a step; 0: not known yet
        self._strange = 0  # optimizer steps since the model's last forward and the step's end
        self._loader_seen = False
        self._early = False  # time is being noted for a step that is not open yet
        self._evaluating = False
        self._thread = threading.get_ident()
        super().__init__(model=model, **arguments)
        self._loaders = Loaders(self.fetch) if self.enabled else None

    def _make_hooks(self, model: Any) -> TorchHooks:
        return TorchHooks(self, model, optimizers=False)  # who looked for the model has hooks on the optimizers

    def _begin(self, seen: Batch) -> None:
        self._end_early()
        self._strange = self._optimizer_steps = 0
        self._core.begin_step(*seen, None, None, 0)
        self._open = True

    def _see(self, batch: Any) -> Batch:
        seen = look_at(batch)
        if seen is None:
            _setup.say("what the model is fed does not tell samples or tokens; their rates stay empty")
        return seen or _NOTHING

    def _close(self) -> None:
        self._expected = self._optimizer_steps
        self.end_step()
        self._begin_early()

    def _begin_early(self) -> None:
        self._early = True
        self._core.begin_phase(_OTHER)

    def _end_early(self) -> None:
        if self._early:
            self._early = False
            self._core.end_phase(_OTHER)

    def _forward_begins(self, batch: Any) -> None:
        if self._evaluating:
            self._evaluating = False
            self._core.end_phase(_EVALUATION)
        if self._open and self._optimizer_steps and not self._loader_seen:
            self._close()
        if batch is None:
            if not self._open:
                self._has_batch = False
                self._begin(_NOTHING)
            return
        backward_begun = self._hooks is not None and self._hooks.take_begun()
        if not self._open:
            self._has_batch = True
            self._begin(self._see(batch))
        elif backward_begun or not self._has_batch:
            self._has_batch = True
            self._core.micro_step(*self._see(batch))

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

    def _optimizer_begins(self) -> None:
        self._end_early()  # the forward may come inside the optimizer's step

    def _optimizer_ended(self) -> None:
        self._optimizer_steps += 1
        if not self._has_model:
            if self._open:
                self.end_step()
            self._begin(_NOTHING)
        elif self._open:
            if self._optimizer_steps == self._expected:
                self._close()
        elif not self._evaluating:
            self._one_more_optimizer()

    def _one_more_optimizer(self) -> None:
        """An optimizer stepped after the step had ended: one more belongs to a step, or the model is another."""
        self._expected += 1
        self._strange += 1
        self._begin_early()
        if self._strange == _STRANGE_STEPS:
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
            elif self._evaluating:
                self._core.end_phase(_EVALUATION)
        super().finish()


def _arguments() -> dict[str, Any]:
    """What ``flopmeter run`` was given that is no option of the monitor."""
    given = {name: os.environ.get(f"FLOPMETER_RUN_{name.upper()}") for name in ("peak", "device", "dtype", "convention")}
    peak = given.pop("peak")
    if peak:
        given["peak_tflops"] = peak if peak == "measured" else float(peak)  # type: ignore[assignment]
    return {name: value for name, value in given.items() if value}


def start(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, look_again: Callable[[], None]) -> Watcher | None:
    """Watch the loop that calls ``model`` for the first time now; None where somebody watches already."""
    others = _setup.active_monitors()
    if any(not each._automatic for each in others):
        return None
    for each in others:  # of a model that is trained no longer
        each.finish()
    torch_adapter()
    watcher = Watcher(model, look_again, **_arguments())
    if not watcher.enabled:
        return None
    if watcher.rank == 0:
        what = "a loop by its optimizer alone" if model is None else _setup.model_name(model)
        _setup.say(f"watching {what}; records in {watcher.directory}")
    if model is None:
        watcher._begin(_NOTHING)
    elif watcher._hooks is not None:
        watcher._hooks._forward_begins(model, args, kwargs)
    return watcher
