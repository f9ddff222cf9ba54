# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.Monitor``: measures a training loop and writes its records to a run directory."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from flopmeter import _flopmeter, lifetime
from flopmeter.batch import Batch, describe
from flopmeter.guard import guarded
from flopmeter.log import log_once
from flopmeter.models import model_name
from flopmeter.options import make_options
from flopmeter.ranks import find_world, make_exchange
from flopmeter.records import RecordThread, take_python_sinks
from flopmeter.spans import Phase, Stage, Step
from flopmeter.torch import loaded_torch
from flopmeter.torch.activities import report_activities
from flopmeter.torch.hooks import CollectorHook, TorchHooks, can_hook
from flopmeter.torch.modules import replicated_hooks
from flopmeter.torch.step_trace import StepTrace
from flopmeter.values import as_float
from flopmeter.workload import describe_workload
from flopmeter.wrap import Wrapped

T = TypeVar("T")
_WITHOUT_STEPS = {
    "explicit": "no step was recorded: wrap the loader with monitor.wrap(loader), or open steps with monitor.step()",
    "per_optimizer_step": "no optimizer step was seen: the records are empty",
    "framework": "no step was recorded: training ended before its first step did",
}
_FINISH_SECONDS = 1.7  # the most that finish() takes, even if an output does not accept its data


class StepSource(NamedTuple):
    """The sources of events for the step tracker, in addition to the marks of the loop."""

    policy: Literal["explicit", "per_optimizer_step", "framework"] = "explicit"
    model_hooks: bool = True  # on the model; False: an integration reports forward and backward
    modules: tuple[Any, ...] = ()  # if the model is a configuration: modules whose passes are forward and backward
    optimizer_hooks: bool = True  # on all optimizers of torch; False: the caller passes them on
    loader_hook: bool = False  # on all loaders of torch
    on_model_lost: Callable[[], None] | None = None  # optimizers step but the model is not called
    automatic: bool = False  # started by ``flopmeter run``: yields to a monitor that the program creates


def _remove_all(hooks: list[Any]) -> None:
    for each in hooks:
        each.remove()


class Monitor:
    """Measures a run.  Every argument is optional.  After the constructor, no method raises for any value.

    ``model``: a module (its Hugging Face config is found), a config, a dict, a well-known name, or a config.json.
    ``peak_tflops``: peak of one device instead of the catalog's; "measured" for the result of ``flopmeter peak``.
    ``config``: more options from a YAML file, YAML text, or a dict.
    ``count``: False does not count operators; ``find_phases``: False records only the phases that the loop marks.
    ``mtp``: True counts layers of multi-token prediction, False excludes them; None follows the convention.
    ``model_flops``: for integrations: what states the model FLOPs; the count then states only the hardware FLOPs.
    ``wandb``: None adds perf/* to the rows of the user's run, True writes separate rows, False writes nothing.
    ``steps``: for integrations, see ``flopmeter.integrations.kit``.
    All other keywords are options by name, as ``flopmeter.options()`` lists them.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        model: Any = None,
        mode: str | None = None,
        device: Any = None,
        dtype: Any = None,
        peak_tflops: float | Literal["measured"] | None = None,
        log_interval: int | None = None,
        flops_profile_freq: int | None = None,
        config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        convention: str | None = None,
        trainable: str | None = None,
        recompute: str | None = None,
        attention: str | None = None,
        mtp: bool | None = None,
        model_flops: Literal["count", "estimate", "framework"] = "count",
        rank: int | None = None,
        world_size: int | None = None,
        data_parallel: int | None = None,
        devices: int = 1,
        count: bool = True,
        find_phases: bool = True,
        wandb: bool | None = None,
        mlflow: bool = False,
        steps: StepSource = StepSource(),
        **options: Any,
    ) -> None:
        if not steps.automatic:
            lifetime.finish_automatic()
        named = dict(options, directory=directory, mode=mode, log_interval=log_interval, measure_frequency=flops_profile_freq)
        sinks = take_python_sinks(named)
        parts = _flopmeter.MonitorConfig()
        parts.options = make_options(named, config, model_name(model))
        values = parts.options.values()
        parts.convention, parts.devices = convention or values["convention"], devices
        parts.model_flops = model_flops
        describe_workload(
            parts,
            model,
            device=device,
            dtype=dtype,
            peak_tflops=peak_tflops,
            trainable=trainable,
            recompute=recompute,
            attention=attention,
            mtp=mtp,
            count=count,
        )
        parts.world = find_world(rank, world_size, data_parallel, model, values)
        parts.exchange = make_exchange(values)
        parts.policy, parts.reports_forward = steps.policy, bool(steps.modules) or model is not None
        self._trace = StepTrace(int(values["disk_limit_mib"])) if int(values["kineto_step"]) else None
        parts.tracer = self._trace
        self.core = _flopmeter.Monitor(parts)
        if self._trace is not None:
            self._trace.path = self.core.status()["trace"]
        self.rank = parts.world.rank
        self.peaks = parts.peaks
        self.automatic = steps.automatic
        self.policy = steps.policy
        self.log_interval = int(values["log_interval"])
        self.options = values
        self._counter = parts.counter
        self._before_torch = loaded_torch() is None
        self._events = _flopmeter.Events(self.core)
        self._step = Step(self)
        self._finished = False
        self._detachable: list[Any] = []
        self.hooks: TorchHooks | None = None
        hooked = find_phases or steps.loader_hook
        if hooked and self.enabled and can_hook():
            on_models = steps.modules or (model,) if find_phases and steps.model_hooks else ()
            self.hooks = TorchHooks(self, on_models, steps.optimizer_hooks, steps.loader_hook, steps.on_model_lost)
            self._detachable.append(self.hooks)
        if parts.counter is not None and (marks := replicated_hooks(model, values["replicated_modules"])) is not None:
            self._detachable.append(marks)
        if self.enabled:
            _flopmeter.find_interpreter_lock()
            found = [CollectorHook(), *report_activities(self._report_activity)]
            self._detachable += found
            weakref.finalize(self, _remove_all, found).atexit = False
        self._records = RecordThread(self.core, wandb if self.rank == 0 else False, mlflow and self.rank == 0, sinks)
        lifetime.finish_at_exit(self)

    def step(self, tokens: int | None = None, samples: int | None = None, **more: Any) -> Step:
        """Open a step for a with statement.

        In addition to ``tokens`` and ``samples``: ``attention_mask``, ``input_ids``, ``seq_lens``, ``image_grid_thw``,
        ``flops``, ``step``, ``epoch``, ``tag``, ``loss``, ``grad_norm``, ``learning_rate``.  Called without ``with``, it
        marks where a step begins and the step before it ends.  Wrong values are dropped and counted in ``status``.
        """
        if more:
            self._begin_described(True, tokens, samples, more)
        else:
            self.core.mark(samples, tokens)
        if self._finished:
            log_once("a step after finish() is not recorded; create a new Monitor")
        return self._step

    def begin_step(self, tokens: int | None = None, samples: int | None = None, **more: Any) -> None:
        """Open a step; arguments as for step()."""
        self._begin_described(False, tokens, samples, more)

    @guarded
    def _begin_described(self, is_mark: bool, tokens: Any, samples: Any, more: dict[str, Any]) -> None:
        marks = {name: more.pop(name) for name in ("step", "epoch", "tag") if name in more}
        outcome = {name: more.pop(name) for name in ("loss", "grad_norm", "learning_rate") if name in more}
        batch = self._describe(samples, tokens, more)
        self.log(**outcome)
        self.core.begin_step(batch, is_mark=is_mark, **marks)

    def _describe(self, samples: Any, tokens: Any, facts: dict[str, Any]) -> Batch:
        try:
            return describe(samples, tokens, **facts)
        except Exception:  # a value of a wrong type, or an unknown keyword
            self.core.drop_value()
            return Batch(samples, tokens)

    @guarded
    def micro_batch(self, tokens: int | None = None, samples: int | None = None, **batch: Any) -> None:
        """Add a micro-batch to the open step; arguments as for step()."""
        self.core.micro_batch(self._describe(samples, tokens, batch))

    @guarded
    def end_step(self, loss: Any = None, grad_norm: Any = None, learning_rate: Any = None, batch: Batch | None = None) -> None:
        """Close the open step; ``batch`` replaces the batch so far, if it is known only now."""
        self.log(loss=loss, grad_norm=grad_norm, learning_rate=learning_rate)
        if batch is None:
            self.core.end()
        else:
            self.core.end_step(batch=batch)

    def abandon_step(self) -> None:
        """Discard the open step."""
        self.core.abandon_step()

    @guarded
    def log(self, *, loss: Any = None, grad_norm: Any = None, learning_rate: Any = None) -> None:
        """Values for the record of the open step, or of the next one.  Tensors on a device are not waited for."""
        values = [as_float(each) for each in (loss, grad_norm, learning_rate)]
        for given, value in zip((loss, grad_norm, learning_rate), values):
            if given is not None and value is None:
                self.core.drop_value()
        if values != [None, None, None]:
            self.core.log(*values)

    def phase(self, name: str) -> Phase:
        """A phase for a with statement.

        One of data, forward, backward, optimizer, communication, checkpoint, evaluation, generation, other.  Between
        steps, checkpoint, evaluation, and generation are separate records.
        """
        if type(name) is str and name not in _flopmeter.phases:
            log_once(f"phase {name!r} is ignored: expected one of {', '.join(_flopmeter.phases)}")
        return Phase(self.core, name)

    def stage(self, name: str) -> Stage:
        """A part of the run for a with statement: the records of its steps have the name in their field ``stage``."""
        return Stage(self.core, name)

    def wrap(self, loader: Iterable[T]) -> Wrapped[T]:
        """The loader, with the wait for each batch timed.

        If the loop opens no steps itself, each optimizer step (without torch: each batch) becomes one.
        """
        return Wrapped(self, loader)

    @guarded
    def emit(self, event: str, **facts: Any) -> tuple[str, ...]:
        """Report an event of the loop; see ``flopmeter.integrations.kit``."""
        return self._events.on(event, **facts)

    @guarded
    def _report_activity(self, event: str, stage: str, **facts: Any) -> None:
        if stage:
            self.core.set_stage(stage)
        self._events.on(event, **facts)

    @guarded
    def set_training_phase(self, name: str) -> None:
        """warmup, main, or finetune: selects how often FLOPs are measured."""
        self.core.set_training_phase(name)

    def model_changed(self) -> None:
        """Other parameters are trained from now on: measurements so far are not valid for them."""
        self.core.model_changed()

    def detach(self) -> None:
        """Remove all hooks and patches; the records so far are written."""
        while self._detachable:
            with contextlib.suppress(Exception):
                self._detachable.pop().remove()

    @guarded
    def finish(self) -> None:
        """Write the remaining records.  Called at exit."""
        if self._finished:
            return
        self._finished = True
        lifetime.finished(self)
        self.detach()
        if self._trace is not None:
            self._trace.end(keep=False)  # of a step that is still open
        deadline = time.monotonic() + _FINISH_SECONDS
        self.core.finish()
        self._records.join(max(deadline - time.monotonic(), 0))
        self._log_what_was_not_counted()

    def _log_what_was_not_counted(self) -> None:
        if self.rank == 0 and not self.status["steps"]:
            log_once(_WITHOUT_STEPS[self.policy])
        if misuse := self.status["misuse"]:
            log_once(f"{misuse} calls came out of order and were ignored, such as end_step() without begin_step()")
        if self._before_torch and loaded_torch() is not None:
            log_once("no FLOPs were counted: the Monitor was created before torch was imported; create it after `import torch`")
        if self._counter is not None and (unsupported := _flopmeter.unsupported_ops()):
            log_once(f"MFU is incomplete: no FLOP cost is known for {', '.join(list(unsupported)[:5])}; see flopmeter.register_op")

    @property
    def enabled(self) -> bool:
        """Whether it records: not disabled by options, not finished, not in a forked child."""
        return self.core.enabled

    @property
    def measuring(self) -> bool:
        """Whether FLOPs of the open step are being counted."""
        return self.core.measuring

    @property
    def status(self) -> dict[str, Any]:
        """The state of the monitor itself."""
        return self.core.status()

    @property
    def directory(self) -> str:
        """The run directory."""
        return self.core.status()["directory"]

    def __repr__(self) -> str:
        status = self.status
        return f"<flopmeter.Monitor: {status['steps']} steps in {status['directory']}>"

    def subscribe(self, capacity: int = 1024) -> _flopmeter.Subscription:
        """A bounded queue of finished records, each as JSON."""
        return self.core.subscribe(capacity)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_error: object) -> None:
        self.finish()
