# SPDX-License-Identifier: Apache-2.0
"""The kit for integrations: everything a callback for a training framework needs, in about 40 lines.

An integration creates a monitor and reports events.  It keeps no state about steps: the step tracker decides where a step
begins and ends, and ignores reports that do not fit.  An integration for a framework with the callbacks ``on_start``,
``on_batch``, ``on_batch_done``, ``on_log``, and ``on_finish``::

    from flopmeter.integrations import kit

    class Callback(kit.Integration):
        def on_start(self, trainer):
            self.start(trainer.output_dir, model=trainer.model, log_interval=trainer.log_every, total_steps=trainer.max_steps)

        def on_batch(self, trainer, batch):
            self.emit("batch_begin", batch=batch, step=trainer.step + 1, epoch=trainer.epoch)

        def on_batch_done(self, trainer, loss):
            self.emit("batch_end", loss=loss)

        def on_log(self, trainer, logs):
            logs.update(self.metrics())

        def on_finish(self, trainer):
            self.stop()

Events, each with its keywords:

===================================== ===============================================================================
``loop_begin``   step                 training begins; time from here on belongs to the first step
``batch_begin``  batch, step, epoch   a step opens, or the batch is added to the open step
``batch_end``    loss                 the step ends if an optimizer stepped since ``batch_begin``
``epoch_end``                         a batch that began and did not end is discarded with its step
``forward_begin``, ``forward_end``    phases of the open step, as are ``backward_*`` and ``optimizer_*``
``evaluation_begin``, ``…_end``       a separate record between steps, as are ``checkpoint_*`` and ``generation_*``
``generation_end`` samples, tokens    sequences and tokens that were generated
===================================== ===============================================================================

Frameworks that know their steps call ``monitor.begin_step(step=, epoch=)`` and ``monitor.end_step(loss=)`` instead of
reporting batches; batches then come from the forward passes of the model.  Torch's optimizers and loaders are hooked while
the monitor runs, so optimizer steps and waits for data need no report.

Every entry from the framework is guarded: decorate the methods of a callback with ``guarded``.
"""

from __future__ import annotations

import os
from typing import Any

from flopmeter.guard import guarded
from flopmeter.log import log_once
from flopmeter.metrics import Window
from flopmeter.monitor import Monitor, StepSource
from flopmeter.options import run_directory
from flopmeter.torch.patch import Patch
from flopmeter.values import as_count, as_float

__all__ = ["Integration", "Monitor", "Patch", "StepSource", "Window", "as_count", "as_float", "guarded", "log_once"]


class Integration:
    """Base of callbacks.  Takes the arguments of Monitor; the run directory is ``<output directory>/perf_monitor`` by default."""

    def __init__(self, directory: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__()
        self._directory = directory
        self._options = options
        self._window: Window | None = None
        self._patches: list[Patch] = []
        self.monitor: Monitor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a callback monitors nothing."""
        return {**self.__dict__, "_window": None, "_patches": [], "monitor": None}

    def start(self, output_directory: str | os.PathLike[str], *, model_hooks: bool = True, step: int | None = None, **arguments: Any) -> None:
        """Start a monitor whose first step is ``step``; ``arguments`` are the framework's, those of the callback win.

        The framework's own log shows the metrics, so the console is off unless the callback gets ``console=True``.
        """
        self.stop()
        steps = StepSource(policy="framework", model_hooks=model_hooks, loader_hook=True)
        options = {"console": False, "wandb": False, "steps": steps, **arguments, **self._options}
        self.monitor = Monitor(self._directory or run_directory(output_directory), **options)
        self._window = Window(self.monitor)
        self.emit("loop_begin", step=step)

    def emit(self, event: str, **facts: Any) -> tuple[str, ...]:
        """Report an event; without a monitor nothing happens."""
        return self.monitor.emit(event, **facts) or () if self.monitor is not None else ()

    def patch(self, owner: Any, name: str, make: Any) -> None:
        """Replace a function until stop(); see Patch."""
        self._patches.append(Patch(owner, name, make))

    def metrics(self) -> dict[str, float]:
        """The six perf/* metrics over the steps since the last call; unknown values are omitted."""
        return self._window.metrics() if self._window is not None else {}

    def detach(self) -> None:
        """Remove all hooks and patches."""
        while self._patches:
            self._patches.pop().remove()
        if self.monitor is not None:
            self.monitor.detach()

    def stop(self) -> None:
        """Discard a step that is open, and write the remaining records."""
        self.detach()
        if self.monitor is not None:
            self.monitor.finish()
