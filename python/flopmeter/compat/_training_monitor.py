# SPDX-License-Identifier: Apache-2.0
"""``TrainingMonitor``: one call a step, MFU every ``flops_profile_freq`` steps, a JSON log and W&B."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from flopmeter import _flopmeter
from flopmeter._adapter import AdapterUnavailable, torch_adapter
from flopmeter._batch import Batch, describe
from flopmeter._monitor import Monitor
from flopmeter._records import WandbWriter
from flopmeter._setup import number_of, torch_module
from flopmeter.compat._estimate import calculate_mfu
from flopmeter.compat._json_log import JsonLog
from flopmeter.compat._measure import (
    _measure_flops_with_profiler,
    estimated_flops,
    get_gpu_peak_flops,
    peak_of,
    smart_flops,
)

_OTHER = _flopmeter.phases["other"]
_DEFAULT_FREQUENCY = 500


def _blocks(config: Any) -> dict[str, Any]:
    """The parts of a script's configuration that are about monitoring."""
    if not isinstance(config, Mapping):
        return {}
    blocks = {name: config[name] for name in ("flopmeter", "monitoring", "monitor") if isinstance(config.get(name), Mapping)}
    if "monitoring" in blocks:
        blocks["monitoring"] = {key: value for key, value in blocks["monitoring"].items() if key != "flops_backend"}
    return blocks


def _find(config: Any, *names: str) -> Any:
    """The first of the names that the configuration or one of its blocks holds."""
    if not isinstance(config, Mapping):
        return None
    for block in (config, *(value for value in config.values() if isinstance(value, Mapping))):
        for name in names:
            if block.get(name) is not None:
                return block[name]
    return None


class TrainingMonitor:
    """Logs each step.  ``log_step`` is called once a step, after it.

    With ``model_ref`` and ``batch_size`` set, FLOPs are measured on a dummy batch; else what ran since the last call
    is counted.  MFU is 0 between two measurements; frequency 0 measures never, and step 0 is measured.  All
    frequencies are in effective steps: after ``gradient_accumulation_steps`` calls.
    """

    def __init__(
        self,
        output_dir: str,
        config: dict[str, Any] | None = None,
        log_file: str = "training_log.json",
        flops_profile_freq: int = _DEFAULT_FREQUENCY,
    ) -> None:
        self.output_dir = output_dir
        self.config = config
        self.model_ref: Any = None
        self.batch_size: int | None = None
        self.seq_length: int | None = None
        self.gradient_accumulation_steps = int(_find(config, "gradient_accumulation_steps") or 1)
        self.flops_backend = str(_find(config, "flops_backend") or "flopmeter")
        self.log_path = os.path.join(output_dir, log_file)
        self._log = JsonLog(self.log_path)
        self.monitor = self._start(config)
        options = self.monitor._options.values()
        self.mode = options["mode"]
        frequency = int(options["measure_frequency"])
        # The argument wins over the configuration, unless it is the default.
        self.flops_profile_freq = flops_profile_freq if flops_profile_freq != _DEFAULT_FREQUENCY else frequency
        self._wandb = WandbWriter(own_rows=True)
        self._counter: Any = None
        self._effective = 0
        self._batches: list[Batch] = []  # micro-batches of the effective step
        self._seconds = 0.0  # that they took so far
        self._begin()

    def _start(self, config: Any) -> Monitor:
        directory = os.path.join(self.output_dir, "perf_monitor")
        own: dict[str, Any] = {"console": False, "unmeasured": "zero", "wandb": False, "find_phases": False, "count": False}
        try:
            return Monitor(directory, config=_blocks(config) or None, **own)
        except ValueError as error:
            print(f"The configuration's monitoring block is not used: {error}")
            return Monitor(directory, **own)

    def _due(self, effective: int) -> bool:
        return self.flops_profile_freq > 0 and effective % self.flops_profile_freq == 0

    def _begin(self) -> None:
        """What follows belongs to the next step."""
        if torch_module() is not None and self._counter is None and self._due(self._effective):
            try:
                self._counter = torch_adapter().OpCounter()
            except (AdapterUnavailable, RuntimeError) as error:
                print(f"FLOPs cannot be counted: {error}")
        if not self._batches:
            self.monitor._core.begin_phase(_OTHER)
        self._started = time.perf_counter()

    def _flops(self, seq_length: int | None) -> float:
        """FLOPs of the effective step that has just ended; 0.0 where they are not known or not asked for."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.stop()
        passes = len(self._batches)
        if self.model_ref is not None and self.batch_size is not None and seq_length:
            if self.mode in ("smart", "estimate"):  # these know every step's
                flops = estimated_flops if self.mode == "estimate" else smart_flops
                return passes * flops(self.model_ref, self.batch_size, seq_length)
            if self._due(self._effective):
                return passes * _measure_flops_with_profiler(
                    self.model_ref, self.batch_size, seq_length, flops_backend=self.flops_backend
                )
        return float(counter.counts()["model_flops"]) if counter is not None else 0.0

    def _sequence_length(self, attention_mask: Any) -> int | None:
        shape = getattr(attention_mask, "shape", None)
        return int(shape[1]) if shape is not None and len(shape) == 2 else self.seq_length

    def log_step(
        self,
        step: int,
        epoch: int,
        loss: float,
        grad_norm: float,
        learning_rate: float,
        attention_mask: Any = None,
        skip_wandb: bool = False,
    ) -> dict[str, float]:
        """Log a step that has ended; returns what was logged."""
        step_time = time.perf_counter() - self._started
        self._seconds += step_time
        self._effective = step // self.gradient_accumulation_steps
        seq_length = self._sequence_length(attention_mask)
        batch = self._batch(attention_mask, seq_length)
        self._batches.append(batch)
        numbers = [number_of(value) for value in (loss, grad_norm, learning_rate)]
        mfu = flops = 0.0
        if (step + 1) % self.gradient_accumulation_steps == 0:
            flops = self._flops(seq_length)
            mfu = self._mfu(flops, self._seconds, step)
            self._record(step, epoch, flops, numbers)
        perf = {
            "perf/mfu": mfu,
            "perf/mfu_percent": 100 * mfu,
            "perf/step_time": step_time,
            "perf/steps_per_second": 1 / step_time if step_time > 0 else 0.0,
            "perf/tokens_per_second": batch.tokens / step_time if batch.tokens and step_time > 0 else 0.0,
            "perf/samples_per_second": batch.samples / step_time if batch.samples and step_time > 0 else 0.0,
        }
        entry = {"step": step, "epoch": epoch, "loss": numbers[0], "grad_norm": numbers[1], "learning_rate": numbers[2]}
        self._log.append({**entry, "timestamp": time.time(), **perf, "flops": flops})
        if not skip_wandb:
            self._to_wandb(perf, entry)
        self._begin()
        return perf

    def _batch(self, attention_mask: Any, seq_length: int | None) -> Batch:
        seen = describe(samples=self.batch_size, attention_mask=attention_mask)
        samples = self.batch_size or len(seen.lengths) or None
        tokens = sum(seen.lengths) or (samples * seq_length if samples and seq_length else None)
        return seen._replace(samples=samples, tokens=tokens)

    def _record(self, step: int, epoch: int, flops: float, numbers: list[float | None]) -> None:
        """The native record of the effective step, which has been open since the last one."""
        core = self.monitor._core
        first, *others = self._batches
        core.begin_step(*first._replace(flops=int(flops) or None), step, int(epoch), _flopmeter.tags["train"])
        for batch in others:
            core.micro_step(*batch)
        core.end_phase(_OTHER)
        core.end_step(*numbers)
        self._batches = []
        self._seconds = 0.0
        self._effective += 1

    def _mfu(self, flops: float, step_time: float, step: int) -> float:
        if flops <= 0:
            return 0.0
        peak = peak_of(self.model_ref) if self.model_ref is not None else get_gpu_peak_flops()
        mfu = calculate_mfu(flops, step_time, peak)
        if peak > 0 and flops / step_time > peak:
            self.monitor._core.add_finding(
                "mfu_above_one",
                f"step {step} did more FLOPs than the peak allows",
                f"{flops:.0f} FLOPs in {step_time:.6f} s against {peak:.0f} FLOP/s",
                "check batch_size against what the step was fed, and the device's peak",
            )
        print(f"Step {step}: MFU by profiler = {mfu:.4f}")
        return mfu

    def _to_wandb(self, perf: dict[str, float], entry: dict[str, Any]) -> None:
        try:
            train = {f"train/{name}": value for name, value in entry.items() if name != "step" and value is not None}
            self._wandb.log({**perf, **train}, entry["step"])
        except Exception as error:
            print(f"W&B did not take step {entry['step']}: {type(error).__name__}: {error}")

    def finish(self) -> None:
        """Write what is left."""
        self.monitor.abandon_step()
        self.monitor.finish()
        self._log.close()
