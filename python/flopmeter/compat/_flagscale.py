# SPDX-License-Identifier: Apache-2.0
"""The classes of FlagScale's performance monitor.  FLOPs are those of the catalog, and the files are the native monitor's."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flopmeter.compat._estimate import reason
from flopmeter.compat._language import log_line, print_line
from flopmeter.estimation import estimate
from flopmeter.integrations.flagscale import FIRST_ROW
from flopmeter.integrations.megatron_flags import monitor_options
from flopmeter.integrations.megatron_loop import Loop, is_first_rank, memory_metrics
from flopmeter.integrations.megatron_model import model_config

_WAIT_SECONDS = 0.05  # for the writer thread, once per log interval


def get_num_microbatches() -> int:
    """From Megatron's calculator; an AttributeError if Megatron has not made one."""
    return int(sys.modules["megatron.core.num_microbatches_calculator"].get_num_microbatches())


class FLOPSFormulas:
    """Forward FLOPs of the matmuls of one layer."""

    @staticmethod
    def gqa_attention_flops(
        batch_size: int, seq_length: int, hidden_size: int, num_attention_heads: int, num_query_groups: int
    ) -> int:
        """Projections and attention over all pairs, with groups of keys and values."""
        keys = hidden_size // max(num_attention_heads, 1) * max(num_query_groups, 1)
        return 4 * batch_size * seq_length * hidden_size * (hidden_size + keys + seq_length)

    @staticmethod
    def attention_flops(batch_size: int, seq_length: int, hidden_size: int, num_attention_heads: int) -> int:
        """The same, with keys and values for each head."""
        return 4 * batch_size * seq_length * hidden_size * (2 * hidden_size + seq_length)

    @staticmethod
    def ffn_flops(batch_size: int, seq_length: int, hidden_size: int, ffn_hidden_size: int, use_swiglu: bool = False) -> int:
        """The matrices of an MLP: three with a gate, else two."""
        return (6 if use_swiglu else 4) * batch_size * seq_length * hidden_size * ffn_hidden_size

    @staticmethod
    def moe_flops(
        batch_size: int, seq_length: int, hidden_size: int, ffn_hidden_size: int, num_experts: int, top_k: int, use_swiglu: bool = False
    ) -> int:
        """The router, and the experts that a token is routed to."""
        experts = top_k * FLOPSFormulas.ffn_flops(batch_size, seq_length, hidden_size, ffn_hidden_size, use_swiglu)
        return 2 * batch_size * seq_length * hidden_size * num_experts + experts


@dataclass
class TFLOPSMetrics:
    """Figures of a run so far."""

    tflops_per_gpu: float = 0.0
    tflops_total: float = 0.0
    model_flops: float = 0.0
    avg_step_time: float = 0.0
    samples_per_second: float = 0.0
    tokens_per_second: float = 0.0
    forward_flops: float = 0.0
    backward_flops: float = 0.0
    optimizer_flops: float = 0.0
    min_step_time: float = float("inf")
    max_step_time: float = 0.0
    std_step_time: float = 0.0


class ModelFLOPSCalculator:
    """Model FLOPs of Megatron's arguments."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self._config: dict[str, Any] | None = None
        try:
            self._config = model_config(args)
        except ValueError as error:
            print_line(f"FLOPs are unknown: {reason(error)}", f"FLOPs未知：{reason(error)}")
        stated = getattr(args, "perf_model_type", "auto")
        self.model_type = stated if stated != "auto" or self._config is None else str(self._config["model_type"])

    def _get_batch_size(self) -> int:
        """Samples of one replica."""
        try:
            number = get_num_microbatches()
        except (KeyError, AttributeError):
            number = getattr(self.args, "num_micro_batches", None) or 1
        return max(1, int(getattr(self.args, "micro_batch_size", None) or 1) * int(number))

    def calculate_total_flops(self, batch_size: int | None = None) -> float:
        """Forward and backward of a batch; 0.0 if the model is unknown."""
        if self._config is None:
            return 0.0
        samples = self._get_batch_size() if batch_size is None else batch_size
        return float(estimate(self._config, seq_len=self.args.seq_length, batch=samples)["flops"]["model"])

    def get_flops_breakdown(self) -> dict[str, float]:
        """By pass."""
        total = self.calculate_total_flops()
        return {"forward": total / 3, "backward": 2 * total / 3, "optimizer": 0.0, "total": total}


class PerfMonitorLogger:
    """Rows that the caller computes, as text and as a JSON summary, on rank 0."""

    def __init__(
        self, log_dir: str = "logs/perf_monitor", log_level: int = 20, enable_console: bool = False, max_log_files: int = 10, log_format: str = "both"
    ) -> None:
        self.enabled = is_first_rank(Namespace())
        self.json_data: list[dict[str, Any]] = []
        self.log_dir, self.log_format, self.max_log_files, self._console = log_dir, log_format, max_log_files, enable_console
        self.session_timestamp = datetime.now().strftime("%Y%m%d_%H%M%S")

    def _append(self, name: str, text: str) -> None:
        if not self.enabled:
            return
        try:
            os.makedirs(self.log_dir, exist_ok=True)
            with open(os.path.join(self.log_dir, name), "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:  # a logger must not end the run
            log_line(f"a log cannot be written: {reason(error)}", f"无法写入日志：{reason(error)}")

    def _text(self, text: str) -> None:
        if self.log_format != "json":
            self._append(f"perf_metrics_{self.session_timestamp}.log", text)
            if self._console and self.enabled:
                print(text, end="")

    def log_metrics(self, iteration: int, metrics_dict: dict[str, float]) -> None:
        """One row."""
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        self._text(f"{now} {iteration} " + " ".join(f"{name}={value:.6g}" for name, value in metrics_dict.items()) + "\n")
        if self.log_format != "text" and self.enabled:
            self.json_data.append({"iteration": iteration, "timestamp": now, **metrics_dict})

    def log_breakdown(self, iteration: int, breakdown: dict[str, float]) -> None:
        """FLOPs by pass."""
        rows = "".join(f"  {name}: {value / 1e12:.2f} TFLOPS\n" for name, value in breakdown.items())
        self._text(f"Estimated FLOPS Breakdown (Iteration {iteration}):\n{rows}")

    def save_summary(self, final_stats: dict[str, Any] | None = None, total_iterations: int | None = None) -> None:
        """The summary file."""
        if self.log_format == "text":
            return
        session = {
            "start_time": self.session_timestamp,
            "end_time": datetime.now().astimezone().isoformat(),
            "total_iterations": len(self.json_data) if total_iterations is None else total_iterations,
        }
        summary = {"session_info": session, "final_statistics": final_stats or {}, "iteration_logs": self.json_data}
        self._append(f"perf_summary_{self.session_timestamp}.json", json.dumps(summary, indent=2))


class PerformanceMonitor:
    """A native monitor under FlagScale's method names."""

    def __init__(self, args: Any, enable_memory_tracking: bool = True) -> None:
        self.args = args
        self.enable_memory_tracking = enable_memory_tracking
        self.step_times: list[float] = []
        self.metrics = TFLOPSMetrics()
        self.flops_calculator = ModelFLOPSCalculator(args)
        self.current_memory_gb = self.peak_memory_gb = 0.0
        options = {**monitor_options(args), **FIRST_ROW, "memory": enable_memory_tracking}
        options.pop("enabled", None)
        self._loop = Loop(args, **options)
        self.file_logger = self._loop.monitor  # writes the files
        self._queue = self._loop.monitor.subscribe(8)
        self.iteration_start_time: float | None = None

    def start_iteration(self) -> None:
        """A step begins."""
        self.iteration_start_time = time.monotonic()
        self._loop.begin(len(self.step_times) + 1)

    def end_iteration(self) -> None:
        """The step has ended."""
        if self.iteration_start_time is None:
            return
        self.step_times.append(time.monotonic() - self.iteration_start_time)
        self.iteration_start_time = None
        self._loop.end(len(self.step_times))

    def update_memory_stats(self) -> None:
        """Memory in the newest record."""
        self._loop.monitor.core.flush()
        wait = _WAIT_SECONDS
        while (text := self._queue.next(wait)) is not None:
            wait = 0.0
            values = memory_metrics(text)
            self.current_memory_gb = values.get("memory/current_gb", self.current_memory_gb)
            self.peak_memory_gb = values.get("memory/peak_gb", self.peak_memory_gb)

    def calculate_metrics(self) -> TFLOPSMetrics:
        """Figures over the second half of the steps, at the median of their times."""
        if not self.step_times:
            return self.metrics
        recent = self.step_times[len(self.step_times) // 2 :]
        seconds, samples = statistics.median(recent), self.flops_calculator._get_batch_size()
        parts = self.flops_calculator.get_flops_breakdown()
        world = max(1, int(getattr(self.args, "world_size", None) or 1))
        replicas = int(getattr(self.args, "data_parallel_size", None) or 1)
        rate = samples * replicas / seconds if seconds > 0 else 0.0
        total = parts["total"] * replicas / seconds / 1e12 if seconds > 0 else 0.0
        self.metrics = TFLOPSMetrics(
            tflops_per_gpu=total / world,
            tflops_total=total,
            model_flops=parts["total"],
            avg_step_time=seconds,
            samples_per_second=rate,
            tokens_per_second=rate * int(getattr(self.args, "seq_length", None) or 0),
            forward_flops=parts["forward"],
            backward_flops=parts["backward"],
            min_step_time=min(self.step_times),
            max_step_time=max(self.step_times),
            std_step_time=statistics.pstdev(recent),
        )
        return self.metrics

    def log_metrics(self, iteration: int, writer: Any = None, wandb_writer: Any = None) -> None:
        """Write the metrics to Megatron's writers; the files are written without a call."""
        metrics = self.calculate_metrics()
        values = {
            "performance/tflops_per_gpu": metrics.tflops_per_gpu,
            "performance/tflops_total": metrics.tflops_total,
            "performance/avg_step_time_ms": metrics.avg_step_time * 1e3,
            "performance/samples_per_second": metrics.samples_per_second,
            "performance/tokens_per_second": metrics.tokens_per_second,
            "memory/current_gb": self.current_memory_gb,
            "memory/peak_gb": self.peak_memory_gb,
        }
        try:
            for name, value in values.items() if writer is not None else ():
                writer.add_scalar(name, value, iteration)
            if wandb_writer is not None:
                wandb_writer.log(values, iteration)
        except Exception as error:  # a logger must not end the run
            log_line(f"a writer did not accept a row: {reason(error)}", f"写入器未接受一行：{reason(error)}")

    def finish(self) -> None:
        """Write the remaining records."""
        self._loop.finish()


class FLOPSMeasurementCallback:
    """The monitor as a callback of a training loop."""

    def __init__(self, args: Any, log_interval: int = 100) -> None:
        self.args = args
        self.log_interval = max(1, int(log_interval))
        self.monitor = PerformanceMonitor(args, enable_memory_tracking=getattr(args, "perf_memory_tracking", True))

    def on_train_batch_start(self, iteration: int) -> None:
        """A step begins."""
        self.monitor.start_iteration()

    def on_train_batch_end(self, iteration: int, writer: Any = None, wandb_writer: Any = None) -> None:
        """The step has ended; a row at the first step and at every log interval."""
        self.monitor.end_iteration()
        if iteration == 1 or iteration > 0 and iteration % self.log_interval == 0:
            self.monitor.update_memory_stats()
            self.monitor.log_metrics(iteration, writer, wandb_writer)

    def on_train_end(self, writer: Any = None, wandb_writer: Any = None) -> None:
        """Training has ended."""
        self.monitor.finish()
