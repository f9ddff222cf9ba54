# SPDX-License-Identifier: Apache-2.0
"""Starts the monitor of an unmodified loop, when ``flopmeter run`` has found its model.

A step lasts from the end of the step before it to the last of its optimizer steps.  The step tracker learns how many these
are from the first step, which ends when the next one begins: with the loader's next batch or the next forward pass.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from flopmeter import lifetime
from flopmeter.log import log_once
from flopmeter.models import model_name
from flopmeter.monitor import Monitor, StepSource
from flopmeter.values import as_count


def _loader_in_use() -> bool:
    """Whether a loader of torch gives batches now.  Looks at types only: attributes may run code of the program."""
    kind = getattr(sys.modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
    return kind is not None and any(kind in type(each).__mro__ for each in gc.get_objects())


_LOOPS = {
    "transformers.trainer": ("train", lambda trainer: trainer.state.max_steps - trainer.state.global_step),
    "lightning.pytorch.trainer.trainer": ("fit", lambda trainer: trainer.estimated_stepping_batches - trainer.global_step),
    "pytorch_lightning.trainer.trainer": ("fit", lambda trainer: trainer.estimated_stepping_batches - trainer.global_step),
}


def _steps_left() -> int | None:
    """Steps that the Hugging Face Trainer or Lightning above this call plans; None in any other loop."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        function, steps_left = _LOOPS.get(frame.f_globals.get("__name__", ""), ("", None))
        # Locals of other frames are not read: a read keeps what they hold alive until the function returns.
        if steps_left is not None and frame.f_code.co_name == function:
            try:
                return as_count(steps_left(frame.f_locals["self"]))
            except Exception:  # of a subclass in the program, or of another version
                return None
        frame = frame.f_back
    return None


def start(model: Any, on_model_lost: Callable[[], None], has_optimizer: bool = True) -> Monitor | None:
    """Monitor the loop that calls ``model`` now, or that is known by its optimizer alone; None if a monitor runs already."""
    others = lifetime.active_monitors()
    if any(not each.automatic for each in others):
        return None
    for each in others:  # of a model whose training has ended
        each.finish()
    steps = StepSource(
        policy="per_optimizer_step",
        optimizer_hooks=model is not None,
        loader_hook=True,
        on_model_lost=on_model_lost,
        automatic=True,
    )
    monitor = Monitor(model=model, steps=steps, total_steps=_steps_left())
    if not monitor.enabled:
        return None
    if monitor.rank == 0:
        what = "a loop by its optimizer alone" if model is None else model_name(model)
        if os.path.isdir(monitor.directory):
            log_once(f"monitoring {what}; records in {monitor.directory}; live view: flopmeter serve")
    if _loader_in_use():
        monitor.core.set_loader_seen()
    if not has_optimizer:
        monitor.core.expect_no_optimizer()
    monitor.core.set_frozen_mode(model is not None and not model.training)
    return monitor


def report_start(monitor: Monitor, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> Any:
    """Report what runs already: the forward pass of the model, which had no hooks when it began.

    Returns the hooks to which optimizer steps have to be passed on, if the loop is known by these alone.
    """
    hooks = monitor.hooks
    if hooks is None:
        return None
    if model is None:
        monitor.emit("loop_begin")
        return hooks.callables.optimizer_pre(), hooks.callables.optimizer_post()
    hooks.callables.forward_pre()(model, args, kwargs or {})
    return None
