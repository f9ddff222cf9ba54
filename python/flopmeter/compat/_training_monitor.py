# SPDX-License-Identifier: Apache-2.0
"""``TrainingMonitor``: one call per step, MFU every ``flops_profile_freq`` steps, a JSON log, and W&B."""

from __future__ import annotations

import os
import time
from typing import Any

from flopmeter import _flopmeter
from flopmeter.torch.adapter import AdapterUnavailable, torch_adapter
from flopmeter.batch import Batch, describe
from flopmeter.monitor import Monitor
from flopmeter.records import WandbWriter
from flopmeter.options import make_options
from flopmeter.ranks import initialized_distributed
from flopmeter.torch import loaded_torch
from flopmeter.values import as_float
from flopmeter.compat._config import find, usable
from flopmeter.compat._estimate import as_number, calculate_mfu, estimated_flops, reason
from flopmeter.compat._json_log import JsonLog
from flopmeter.compat._language import log_line, print_line
from flopmeter.compat._measure import (
    _measure_flops_with_profiler,
    device_and_dtype,
    get_gpu_peak_flops,
    usual_dtype,
)
from flopmeter.compat._modes import Calibration

_DEFAULT_FREQUENCY = 500


def _whole(value: Any, otherwise: int) -> int:
    number = as_number(value)
    return otherwise if number is None else int(number)


def _is_first_rank() -> bool:
    distributed = initialized_distributed()
    return (distributed.get_rank() if distributed is not None else _flopmeter.World().rank) == 0


def _metrics(mfu: float = 0.0, step_time: float = 0.0, batch: Batch = Batch()) -> dict[str, float]:
    """The six perf/* values; unknown values are 0."""

    def rate(amount: int | None) -> float:
        return amount / step_time if amount and step_time > 0 else 0.0

    return {
        "perf/mfu": mfu,
        "perf/mfu_percent": 100 * mfu,
        "perf/step_time": step_time,
        "perf/steps_per_second": rate(1),
        "perf/tokens_per_second": rate(batch.tokens),
        "perf/samples_per_second": rate(batch.samples),
    }


class TrainingMonitor:
    """Logs each step. Call ``log_step`` once after each step; it never raises.

    With ``model_ref`` and ``batch_size``, FLOPs are measured on a dummy batch; else the operators since the last call are
    counted. MFU is 0 between measurements; frequency 0 never measures, and step 0 is measured. All frequencies are in
    process steps: after ``gradient_accumulation_steps`` calls. Only rank 0 prints, appends to the JSON log (after the
    entries of an earlier run), and adds a row to W&B per process step.
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
        self.gradient_accumulation_steps = max(_whole(find(config, "gradient_accumulation_steps"), 1), 1)
        self.flops_backend = str(find(config, "flops_backend") or "flopmeter")
        self._known = usable(config, print if _is_first_rank() else lambda _line: None)
        options = make_options({}, self._known, "").values()
        self.mode = options["mode"]
        phase = options["training_phase"]
        of_phase = None if phase == "unset" else int(options[f"{phase}_frequency"])
        in_config = int(options["measure_frequency"]) if of_phase is None else of_phase
        # The argument takes precedence over the configuration, unless it is the default.
        given = _whole(flops_profile_freq, _DEFAULT_FREQUENCY)
        self.flops_profile_freq = given if given != _DEFAULT_FREQUENCY else in_config
        self._measures = self.mode != "hybrid" or options["fallback_to_profiler"] == "true"
        self._calibration = Calibration(
            int(options["recalibration_frequency"]) if of_phase is None else of_phase,
            options["initial_profiling"] == "true",
            options["calibration"] == "true",
        )
        self.log_path = os.path.join(output_dir, log_file)
        self._log = JsonLog(self.log_path) if _is_first_rank() else None
        self._monitor: Monitor | None = None
        self._wandb = WandbWriter(own_rows=False, keep_all=True)
        self._peaks: dict[tuple[Any, Any], float] = {}
        self._found_above_one = self._reported_missing = False
        self._counted_per_token = 0.0  # of the last counted step, for modes without a model
        self._counter: Any = None
        self._step = -1
        self._effective = 0
        self._batches: list[Batch] = []  # micro-batches of the process step
        self._begin()

    @property
    def monitor(self) -> Monitor:
        """The native monitor, created in the first step, when the model, its device, and its dtype are known."""
        if self._monitor is None:
            device, dtype = self._place()
            self._monitor = Monitor(
                os.path.join(self.output_dir, "perf_monitor"),
                config=self._known or None,
                device=device,
                dtype=dtype or usual_dtype(),
                console=False,
                unmeasured="zero",
                wandb=False,
                find_phases=False,
                count=False,
            )
        return self._monitor

    def _place(self) -> tuple[Any, Any]:
        """Device and dtype of the model; None without a model."""
        return device_and_dtype(self.model_ref) if hasattr(self.model_ref, "parameters") else (None, None)

    def _due(self, effective: int) -> bool:
        frequency = _whole(self.flops_profile_freq, 0)
        return self._measures and frequency > 0 and effective % frequency == 0

    def _begin(self) -> None:
        """Start of the next step."""
        if loaded_torch() is not None and self._counter is None and self._due(self._effective):
            try:
                self._counter = torch_adapter().OpCounter()
            except (AdapterUnavailable, RuntimeError) as error:
                log_line(f"FLOPs cannot be counted: {reason(error)}", f"无法统计FLOPs：{reason(error)}")
        if self._monitor is not None and not self._batches:
            self._monitor.core.begin_phase("other")
        self._started = time.monotonic_ns()
        if not self._batches:
            self._effective_started = self._started

    def _flops(self, seq_length: int | None) -> tuple[float, bool]:
        """FLOPs of the process step that just ended (0.0 if unknown or not requested), and whether they were measured."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.stop()
        passes, due = len(self._batches), self._due(self._effective)
        model, batch_size = self.model_ref, _whole(self.batch_size, 0)
        if model is not None and batch_size and seq_length:
            if self.mode == "estimate":
                return passes * estimated_flops(model, batch_size, seq_length), False
            if self.mode == "smart":
                flops, measured = self._calibration.flops(model, batch_size, seq_length)
                return passes * flops, measured
            if due:
                flops = _measure_flops_with_profiler(model, batch_size, seq_length, flops_backend=self.flops_backend)
                if flops > 0:
                    return passes * flops, True
        counted = float(counter.counts()["model_flops"]) if counter is not None and due else 0.0
        if self.mode not in ("smart", "estimate"):
            return counted, counted > 0
        return self._live_flops(counted), counted > 0

    def _live_flops(self, counted: float) -> float:
        """The count of this step, or the last one in proportion to the tokens: without a model, nothing can be estimated."""
        tokens = sum(batch.tokens or 0 for batch in self._batches) or len(self._batches)
        if counted > 0:
            self._counted_per_token = counted / tokens
        if self._counted_per_token == 0.0 and not self._reported_missing and _is_first_rank():
            self._reported_missing = True
            print_line(
                f"Mode {self.mode}: MFU is 0, because neither model_ref and batch_size nor a counted step are known",
                f"模式 {self.mode}：MFU为0：没有 model_ref 和 batch_size，也没有计数过的步骤",
            )
        return self._counted_per_token * tokens

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
        """Log a step that has ended; returns the logged values."""
        ended = time.monotonic_ns()
        try:
            return self._log_step(ended, step, epoch, [loss, grad_norm, learning_rate], attention_mask, skip_wandb)
        except Exception as error:  # a logger must not end the run
            log_line(f"a step cannot be logged: {reason(error)}", f"无法记录步骤：{reason(error)}")
            self._batches = []
            if self._monitor is not None:
                self._monitor.abandon_step()
            return _metrics()
        finally:
            self._begin()

    def _log_step(
        self, ended: int, step: Any, epoch: Any, values: list[Any], attention_mask: Any, skip_wandb: bool
    ) -> dict[str, float]:
        self._step = step = _whole(step, self._step + 1)
        epoch = as_number(epoch)
        epoch = int(epoch) if epoch is not None and epoch == int(epoch) else epoch
        numbers = [as_float(value) for value in values]
        accumulated = max(_whole(self.gradient_accumulation_steps, 1), 1)
        self._effective = step // accumulated
        step_time = (ended - self._started) / 1e9
        batch, seq_length = self._describe(attention_mask)
        self._batches.append(batch)
        is_first = _is_first_rank()
        is_whole = (step + 1) % accumulated == 0
        mfu = flops = 0.0
        if is_whole:
            flops, measured = self._flops(seq_length)
            mfu = self._mfu(flops, (ended - self._effective_started) / 1e9, step)
            if measured and is_first:
                print_line(f"Step {step}: MFU by profiler = {mfu:.4f}", f"🔍 步骤 {step}: 使用profiler计算MFU = {mfu:.4f}")
            self._record(step, epoch, flops, numbers, ended)
        perf = _metrics(mfu, step_time, batch)
        entry = {"step": step, "epoch": epoch, "loss": numbers[0], "grad_norm": numbers[1], "learning_rate": numbers[2]}
        if is_first:
            if self._log is not None:
                self._log.append({**entry, "timestamp": time.time(), **perf, "flops": flops})
            if is_whole and not skip_wandb:
                self._to_wandb(perf, entry)
        return perf

    def _describe(self, attention_mask: Any) -> tuple[Batch, int | None]:
        """The batch, and its padded length."""
        seen = describe(attention_mask=attention_mask)
        seq_length = seen.padded_length or max(seen.lengths, default=0) or _whole(self.seq_length, 0) or None
        samples = _whole(self.batch_size, 0) or len(seen.lengths) or None
        if seq_length and samples and samples > len(seen.lengths) == 1:
            seen = seen._replace(lengths=[seq_length] * samples)  # one mask for all rows
        tokens = sum(seen.lengths) or (samples * seq_length if samples and seq_length else None)
        return seen._replace(samples=samples, tokens=tokens), seq_length

    def _record(self, step: int, epoch: float | None, flops: float, numbers: list[float | None], ended: int) -> None:
        """The native record of the process step, with the time of the loop and without the time of the measurement."""
        core = self.monitor.core
        first, *others = self._batches
        number = None if epoch is None else int(epoch)
        core.begin_step(first._replace(flops=int(flops) or None), step, number)
        for batch in others:
            core.micro_batch(batch)
        loss, grad_norm, learning_rate = numbers
        core.end_step(loss, grad_norm, learning_rate, (self._effective_started, ended))
        self._batches = []
        self._effective += 1

    def _mfu(self, flops: float, step_time: float, step: int) -> float:
        if flops <= 0:
            return 0.0
        place = self._place()
        if place not in self._peaks:  # looked up once; an unknown peak is logged
            self._peaks[place] = get_gpu_peak_flops(*place)
        peak = self._peaks[place]
        if peak <= 0 or step_time <= 0:
            return 0.0
        if flops / step_time > peak and not self._found_above_one:
            self._found_above_one = True
            self.monitor.core.add_finding(
                "mfu_above_100",
                f"step {step} did more FLOPs than the peak allows",
                f"{flops:.0f} FLOPs in {step_time:.6f} s against {peak:.0f} FLOP/s",
                "check batch_size and the peak of the device",
            )
        return calculate_mfu(flops, step_time, peak)

    def _to_wandb(self, perf: dict[str, float], entry: dict[str, Any]) -> None:
        try:
            train = {f"train/{name}": value for name, value in entry.items() if name != "step" and value is not None}
            self._wandb.log({**perf, **train}, entry["step"])
        except Exception as error:
            log_line(f"W&B did not accept a step: {reason(error)}", f"W&B未接受步骤：{reason(error)}")

    def finish(self) -> None:
        """Write the remaining entries."""
        if self._counter is not None:
            self._counter.stop()
            self._counter = None
        if self._monitor is not None:
            self._monitor.abandon_step()
            self._monitor.finish()
        if self._log is not None:
            self._log.close()
