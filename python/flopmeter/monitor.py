# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.Monitor``: watches a training loop and writes what it sees to a run directory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from flopmeter import _flopmeter
from flopmeter import config as setup
from flopmeter.batch import Batch, describe, look_at
from flopmeter.torch.compiled_code import hidden_kernels
from flopmeter.torch.hooks import TorchHooks
from flopmeter.records import RecordThread
from flopmeter.spans import Aside, Phase, Step
from flopmeter.wrap import Wrapped

T = TypeVar("T")
_NOTHING = Batch()
_EVALUATION = _flopmeter.phases["evaluation"]
_FINISH_SECONDS = 1.7  # that finish() takes at most, outputs that stand still included
_LONGEST_ACCUMULATION = 512  # batches without an optimizer step after which a batch counts as a step


class Monitor:
    """Watches a run.  Every argument is optional, and nothing it does after this call raises or waits.

    ``model``: a module (its Hugging Face config is found), a config, a dict, a well-known name or a config.json.
    ``peak_tflops``: peak of one device, instead of the catalog's; "measured" for what ``flopmeter peak`` found.
    ``config``: more options from a YAML file, YAML text or a dict, as other tools write them.
    ``count``: False leaves the op stream alone; ``find_phases``: False takes only the phases that the loop marks.
    ``mtp``: True counts layers of multi-token prediction, False leaves them out; None does as the convention does.
    ``wandb``: None adds perf/* to the rows of your own run, True writes rows of its own, False leaves it alone.
    All other keywords are options by name, as ``flopmeter.options()`` lists them.
    """

    _automatic = False  # started by nobody in the program: stands back for one that was

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
        rank: int | None = None,
        world_size: int | None = None,
        data_parallel: int | None = None,
        devices: int = 1,
        count: bool = True,
        find_phases: bool = True,
        wandb: bool | None = None,
        mlflow: bool = False,
        **options: Any,
    ) -> None:
        if not self._automatic:
            setup.finish_automatic()
        named = dict(options, directory=directory, mode=mode, log_interval=log_interval, measure_frequency=flops_profile_freq)
        sinks = setup.python_sinks(named)
        self._options = setup.make_options(named, config, setup.model_name(model))
        parts = setup.parts_of(model, device, dtype, peak_tflops, trainable, recompute, attention, mtp, self._options, count)
        self._device = parts.device
        self.peaks = parts.peaks
        world = setup.world_of(rank, world_size, data_parallel, model, self._options)
        self.rank = world.rank
        self._core = _flopmeter.Monitor(
            self._options,
            parts.peaks,
            parts.model,
            parts.training,
            convention or self._options.values()["convention"],
            parts.dtype,
            parts.source,
            world,
            bool(self._options.values()["replicated_modules"]),
            setup.exchange_of(self._options),
            devices,
            parts.model_source,
            parts.gpu,
            parts.known_work,
        )
        self._step = Step(self)
        self._phases = {name: Phase(self._core, number) for name, number in _flopmeter.phases.items()}
        for name in ("evaluation", "checkpoint"):
            self._phases[name] = Aside(self, _flopmeter.phases[name])
        self._open = False  # a step is open
        self._early = False  # time is being noted for one that is not
        self._mark = False  # and was opened by a step() that is no with statement: the next one ends it
        self._aside = False  # the loop marks an evaluation or a checkpoint
        self._evaluating = False  # a hook saw one
        self._trained = False  # optimizers stepped
        self._auto = False  # and it was opened by wrap() or a hook, not by the loop
        self._explicit = False  # the loop marks its steps itself
        self._has_batch = False  # the open step's batch is known
        self._batch_by_hook = False  # and was seen by a hook, which then adds those of later forwards
        self._pending: Any = None  # a batch that no step has taken yet
        self._batches = 0  # of the open automatic step
        self._optimizer_steps = 0
        self._outcome: dict[str, float] = {}
        self._steps_to_memory = 0
        self._log_interval = int(self._options.values()["log_interval"])
        self._finished = False
        self._hooks = self._make_hooks(model) if find_phases and self.enabled and setup.can_find_phases() else None
        self._counts = parts.source is not None
        self._before_torch = setup.torch_module() is None
        self._replicated = setup.replicated_hooks(model, self._options) if self._counts else None
        self._records = RecordThread(self._core, wandb if self.rank == 0 else False, mlflow and self.rank == 0, sinks)
        setup.finish_at_exit(self)

    def step(self, tokens: int | None = None, samples: int | None = None, **more: Any) -> Step:
        """Open a step for a with statement.

        Besides ``tokens`` and ``samples``: ``attention_mask``, ``input_ids``, ``seq_lens``, ``image_grid_thw``,
        ``flops``, ``step``, ``epoch``, ``tag``, ``loss``, ``grad_norm``, ``learning_rate``.  Called without ``with``, it
        marks where a step begins and the one before it ends.
        """
        if self._mark:
            self.end_step()
        self.begin_step(tokens, samples, **more)
        self._mark = True
        return self._step

    def begin_step(self, tokens: int | None = None, samples: int | None = None, **more: Any) -> None:
        """Open a step; arguments as for step()."""
        self._explicit = True
        if self._auto:
            self.abandon_step()
        self._end_evaluation()
        if self._hooks is not None:
            self._hooks.use_thread()
        if more or self._pending is not None:
            self._begin_described(tokens, samples, **more)
        else:
            self._has_batch = tokens is not None or samples is not None
            self._core.begin(samples, tokens)
        self._batch_by_hook = False
        self._open = True

    def _begin_described(
        self,
        tokens: int | None,
        samples: int | None,
        step: int | None = None,
        epoch: float | None = None,
        tag: str = "train",
        loss: Any = None,
        grad_norm: Any = None,
        learning_rate: Any = None,
        **batch: Any,
    ) -> None:
        if tag not in _flopmeter.tags:
            raise ValueError(f"tag '{tag}': expected one of {', '.join(_flopmeter.tags)}")
        described = describe(samples, tokens, **batch)
        if described == _NOTHING and self._pending is not None:
            described = look_at(self._pending) or _NOTHING
        self._pending = None
        self._has_batch = described != _NOTHING
        self.log(loss=loss, grad_norm=grad_norm, learning_rate=learning_rate)
        self._core.begin_step(*described, step, None if epoch is None else int(epoch), _flopmeter.tags[tag])

    def micro_batch(self, tokens: int | None = None, samples: int | None = None, **batch: Any) -> None:
        """Add a micro-batch to the open step; arguments as for step()."""
        self._has_batch = True
        self._core.micro_batch(*describe(samples, tokens, **batch))

    def end_step(self, loss: Any = None, grad_norm: Any = None, learning_rate: Any = None) -> None:
        """Close the open step."""
        if loss is not None or grad_norm is not None or learning_rate is not None:
            self.log(loss=loss, grad_norm=grad_norm, learning_rate=learning_rate)
        if self._hooks is not None:
            self._hooks.step_ends(self)
        if self._device is not None:
            self._note_memory()
        self._open = self._auto = self._mark = False
        if self._outcome:
            outcome, self._outcome = self._outcome, {}
            self._core.end_step(outcome.get("loss"), outcome.get("grad_norm"), outcome.get("learning_rate"))
        else:
            self._core.end()

    def abandon_step(self) -> None:
        """Forget the open step."""
        self._open = self._auto = self._mark = False
        self._outcome.clear()
        self._core.abandon_step()

    def log(self, *, loss: Any = None, grad_norm: Any = None, learning_rate: Any = None) -> None:
        """Values for the record of the open step, or of the next one.  Tensors on a device are not waited for."""
        for name, value in (("loss", loss), ("grad_norm", grad_norm), ("learning_rate", learning_rate)):
            number = setup.number_of(value)
            if number is not None:
                self._outcome[name] = number

    def phase(self, name: str) -> Phase:
        """A phase for a with statement: data, forward, backward, optimizer, communication, checkpoint, evaluation, other."""
        phase = self._phases.get(name)
        if phase is None:
            raise ValueError(f"phase '{name}': expected one of {', '.join(self._phases)}")
        if self._hooks is not None and name in ("forward", "backward", "optimizer"):
            self._hooks.phases = False  # the loop knows better
        return phase

    def wrap(self, loader: Iterable[T]) -> Wrapped[T]:
        """The loader, with the wait for each batch timed.

        Where the loop opens no steps itself, each optimizer step (without torch: each batch) becomes one.
        """
        return Wrapped(self, loader)

    def set_training_phase(self, name: str) -> None:
        """warmup, main or finetune: picks how often FLOPs are measured."""
        self._core.set_training_phase(name)

    def model_changed(self) -> None:
        """Other parameters are trained from now on: what was measured no longer holds."""
        self._core.model_changed()

    def finish(self) -> None:
        """Write what is left.  Called at exit by itself."""
        if self._finished:
            return
        self._finished = True
        self._leave_step()
        self._end_evaluation()
        if self._hooks is not None:
            self._hooks.remove()
        if self._replicated is not None:
            self._replicated.remove()
        deadline = time.monotonic() + _FINISH_SECONDS
        self._core.finish()
        self._records.join(max(deadline - time.monotonic(), 0))
        if self._before_torch and setup.torch_module() is not None:
            setup.say("torch was imported after the monitor was made, so no FLOPs were counted; make the monitor after it")
        if self._counts and (hidden := hidden_kernels()):
            setup.say(f"FLOPs inside {len(hidden)} kernels of torch.compile are in no count: {', '.join(hidden[:3])}")

    @property
    def enabled(self) -> bool:
        """Whether it watches: not switched off, not finished, not a forked child."""
        return self._core.enabled

    @property
    def measuring(self) -> bool:
        """Whether FLOPs of the open step are being counted."""
        return self._core.measuring

    @property
    def status(self) -> dict[str, Any]:
        """How the monitor itself is doing."""
        return self._core.status()

    @property
    def directory(self) -> str:
        """The run directory."""
        return self._core.status()["directory"]

    def subscribe(self, capacity: int = 1024) -> _flopmeter.Subscription:
        """A bounded queue of finished records, each as JSON."""
        return self._core.subscribe(capacity)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_error: object) -> None:
        self.finish()

    def _make_hooks(self, model: Any) -> TorchHooks:
        return TorchHooks(self, model)

    def _note_memory(self) -> None:
        self._steps_to_memory -= 1
        if self._steps_to_memory < 0:
            self._steps_to_memory = self._log_interval - 1
            self._core.set_device_memory(*setup.device_memory(self._device))

    def _forward_begins(self, batch: Any) -> None:
        """The model's forward starts: a step opens for a waiting batch, and what the model is fed is noted.

        Without gradients (a reference, a generation) it is fed no batch of the step: ``batch`` is None.
        """
        self._end_evaluation()
        if not self._open and self._pending is not None and not self._explicit:
            self._begin_auto()
        if self._open and (not self._has_batch or self._batch_by_hook):
            seen = look_at(batch)
            if seen is not None:
                self._core.micro_batch(*seen)
                self._has_batch = self._batch_by_hook = True

    def _leave_step(self) -> None:
        """What comes now is not the open step's, if its work is done."""
        if self._mark or self._auto and self._optimizer_steps:
            self.end_step()

    def _evaluation_begins(self) -> None:
        """The model's forward starts in evaluation mode: a record of its own, or part of a step that is under way."""
        if self._evaluating or self._aside or not self._trained:
            return
        if self._auto:
            self._leave_step()
        if self._open:
            return
        self._core.abandon_step()  # the wait before it is no wait of a step
        self._evaluating = True
        self._core.begin_phase(_EVALUATION)

    def _end_evaluation(self) -> None:
        if self._evaluating:
            self._evaluating = False
            self._core.end_phase(_EVALUATION)

    def _end_early(self) -> None:
        """Time is no longer noted for a step that is not open."""

    def _optimizer_ended(self, _optimizer: Any) -> None:
        self._optimizer_steps += 1
        self._trained = True

    def _begin_auto(self) -> None:
        seen = look_at(self._pending)
        self._pending = None
        self._batches = 1
        self._has_batch = seen is not None
        self._batch_by_hook = False
        self._core.begin_step(*(seen or _NOTHING), None, None, 0)
        self._open = self._auto = True

    def _batch_arrived(self, batch: Any) -> None:
        if self._auto:
            self._batches += 1
            self._core.micro_batch(*(look_at(batch) or _NOTHING))
            return
        self._optimizer_steps = 0
        self._pending = batch

    def _batch_done(self) -> None:
        self._end_evaluation()
        if self._pending is not None and not self._explicit and not self._auto:
            self._begin_auto()  # no forward was seen: the step is known by its end only
        if not self._auto:
            return
        waits = self._hooks is not None and self._optimizer_steps == 0 and self._batches < _LONGEST_ACCUMULATION
        if not waits:
            self.end_step()

    def _is_evaluation(self) -> bool:
        """Whether a loop that begins now trains nothing: its batches are no steps."""
        return self._trained and not self._explicit and self._hooks is not None and not self._hooks.has_gradients()

    def _loop_begins(self) -> None:
        self._leave_step()  # of a loop that was left, and its iterator kept
        self._end_evaluation()
        if self._hooks is not None:
            self._hooks.use_thread()

    def _loop_ended(self) -> None:
        if self._auto and self._optimizer_steps > 0:
            self.end_step()
        elif self._auto or not self._open:
            self.abandon_step()
        self._pending = None
