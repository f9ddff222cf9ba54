# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM and FlagScale: the ``--perf-*`` flags, the model from Megatron's arguments, and the hooks of the loop.

    parser = flopmeter.megatron.add_arguments(parser)
    args = parser.parse_args()
    initialize_perf_monitor(args)
    for iteration in ...:
        perf_monitor_start_iteration(iteration)
        train_step(...)
        perf_monitor_end_iteration(iteration)
    perf_monitor_end_training()
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import Any

from flopmeter import _flopmeter
from flopmeter.batch import describe
from flopmeter.integrations.megatron_model import model_config, needed, recompute_of
from flopmeter.models import find_model
from flopmeter.monitor import Monitor
from flopmeter.guard import describe_error, guarded
from flopmeter.log import log_once
from flopmeter.metrics import Window

__all__ = [
    "add_arguments",
    "add_perf_monitor_args",
    "get_perf_monitor",
    "initialize_perf_monitor",
    "model_config",
    "monitor_options",
    "perf_monitor_end_iteration",
    "perf_monitor_end_training",
    "perf_monitor_start_iteration",
]

# FlagScale's flags without effect, with the reason.
_WITHOUT_EFFECT = {
    "--perf-log-format": (("both", "text", "json"), "both are written"),
    "--perf-model-type": (("auto", "gpt", "llama", "qwen", "mixtral", "aquila"), "the model follows from its sizes"),
}
# Several documents per sequence; the arguments do not contain their lengths.
_PACKED = ("reset_attention_mask", "sft", "rl_use_sequence_packing", "use_packed_sequence")

_loop: _Loop | None = None


def _rows() -> list[dict[str, Any]]:
    """Options with a separate flag; --tensorboard-dir and similar flags are Megatron's."""
    return [row for row in _flopmeter.option_rows() if row["flag"] and not row["shared"]]


def _typed(text: str) -> str | int:
    return int(text) if text.isdigit() else text


def _value(name: str, text: str) -> str | int:
    """The value of an option, checked."""
    try:
        _flopmeter.Options().set(name, text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return _typed(text)


def add_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add ``--enable-perf-monitor``, ``--perf-log-interval`` and the other flags; returns the parser."""
    group = parser.add_argument_group(title="performance monitor")
    for row in _rows():
        help_text = row["help"].replace("%", "%%")
        if row["is_switch"]:
            default = row["flag_default"] == "true"
            group.add_argument(row["flag"], action=argparse.BooleanOptionalAction, default=default, help=help_text)
        else:
            group.add_argument(
                row["flag"],
                type=partial(_value, row["name"]),
                default=_typed(row["flag_default"]) if row["flag_default"] else None,
                help=help_text,
            )
    for flag, (choices, why) in _WITHOUT_EFFECT.items():
        group.add_argument(flag, choices=choices, default=choices[0], help=f"no effect: {why}")
    return parser


add_perf_monitor_args = add_arguments  # FlagScale's name


def monitor_options(args: argparse.Namespace) -> dict[str, Any]:
    """Keywords for Monitor from parsed flags; flags that the parser does not have keep their defaults."""
    options: dict[str, Any] = {}
    for row in _rows():
        value = getattr(args, row["flag"].lstrip("-").replace("-", "_"), None)
        if value is None:
            value = row["flag_default"] or None
        if value is not None:
            options[row["name"]] = value
    for shared in ("tensorboard", "tensorboard_dir"):
        if getattr(args, shared, None):
            options[shared] = getattr(args, shared)
    return options


def _sizes(args: argparse.Namespace) -> dict[str, int]:
    """Ranks, and how the work is split over them."""
    sizes = {
        "tensor_parallel": "tensor_model_parallel_size",
        "pipeline_parallel": "pipeline_model_parallel_size",
        "context_parallel": "context_parallel_size",
        "expert_parallel": "expert_model_parallel_size",
    }
    layout = {ours: int(getattr(args, name, None) or 1) for ours, name in sizes.items()}
    world = int(getattr(args, "world_size", None) or os.environ.get("WORLD_SIZE") or 1)
    split = layout["tensor_parallel"] * layout["pipeline_parallel"] * layout["context_parallel"]
    replicas = getattr(args, "data_parallel_size", None) or max(1, world // split)
    return {"world_size": world, "data_parallel": int(replicas), **layout}


def _model(args: argparse.Namespace) -> dict[str, Any] | None:
    """The model of the arguments; without one, the run is monitored without FLOPs."""
    try:
        needed(args, "seq_length")
        config = model_config(args)
        find_model(config)
    except ValueError as error:
        log_once(f"{error}; FLOPs and MFU stay empty")
        return None
    return config


def _dtype(args: argparse.Namespace) -> str:
    for low in ("fp4", "fp8"):
        if getattr(args, low, None):
            return low
    return "bf16" if getattr(args, "bf16", False) else "fp16" if getattr(args, "fp16", False) else "fp32"


def _log_approximations(args: argparse.Namespace, recompute: str) -> None:
    if recompute:
        log_once(recompute)
    for name in _PACKED:
        if getattr(args, name, None):
            log_once(f"{name}: attention is counted over whole sequences, as Megatron does, not over the documents inside")
    for flag, (choices, why) in _WITHOUT_EFFECT.items():
        if getattr(args, flag[2:].replace("-", "_"), choices[0]) != choices[0]:
            log_once(f"{flag} has no effect: {why}")


class _Loop:
    """The monitor, and the batch of Megatron's loop."""

    def __init__(self, monitor: Monitor, args: argparse.Namespace, replicas: int, wandb: bool) -> None:
        self.monitor = monitor
        of_a_replica = int(getattr(args, "global_batch_size", None) or 0) // replicas
        self._size = int(getattr(args, "micro_batch_size", None) or of_a_replica or 1)
        self._tokens = self._size * int(getattr(args, "seq_length", None) or 0) or None
        self._micro_batches = int(getattr(args, "num_micro_batches", None) or max(1, of_a_replica // self._size))
        self._wandb = wandb
        self._window: Window | None = None
        self._iteration = 0

    def _count(self) -> int:
        """Micro-batches of this iteration: their number grows if the batch is ramped up."""
        calculator = sys.modules.get("megatron.core.num_microbatches_calculator")
        try:
            return int(calculator.get_num_microbatches())  # type: ignore[union-attr]
        except (AttributeError, TypeError):  # Megatron is not there, or has not made its calculator
            return self._micro_batches

    def detach(self) -> None:
        """Called by the guard after a failure."""
        self.monitor.detach()

    @guarded
    def begin(self, iteration: int) -> None:
        self._iteration = iteration
        self.monitor.begin_step(samples=self._size, tokens=self._tokens, step=iteration)
        batch = describe(self._size, self._tokens)
        for _ in range(self._count() - 1):
            self.monitor.core.micro_batch(batch)

    @guarded
    def end(self, iteration: int, wandb_writer: Any, values: dict[str, Any]) -> None:
        if wandb_writer is not None and self._wandb and self._window is None:
            self._window = Window(self.monitor)
        if iteration > self._iteration + 1:  # a loop that increments before it calls is ahead by one
            log_once(f"iteration {self._iteration} ended as {iteration}: the time of the skipped iterations is not recorded")
            self.monitor.abandon_step()
            return
        self.monitor.end_step(**values)
        if iteration % self.monitor.log_interval == 0:
            self.log(iteration, wandb_writer)

    @guarded
    def finish(self, wandb_writer: Any = None) -> None:
        self.monitor.finish()
        self.log(self._iteration, wandb_writer)

    def log(self, iteration: int, wandb_writer: Any) -> None:
        """Log what is known to the W&B that Megatron keeps on its last rank, under Megatron's own step."""
        if wandb_writer is None or self._window is None:
            return
        try:
            if values := self._window.metrics(wait=0):
                wandb_writer.log(values, iteration)
        except Exception as error:  # a logger must not end the run
            log_once(f"W&B did not accept a row: {describe_error(error)}")


def initialize_perf_monitor(args: argparse.Namespace, **more: Any) -> Monitor | None:
    """Start the monitor if ``--enable-perf-monitor`` was given; one that still runs is finished.

    FLOPs come from the arguments, since fused kernels hide from a count: each rank's are an even share of its
    data-parallel replica's, so that the ranks together have those of the global batch.  ``more``: arguments of Monitor.
    """
    global _loop
    perf_monitor_end_training()
    options = monitor_options(args)
    if options.pop("enabled", "false") in (False, "false"):
        return None
    sizes = _sizes(args)
    recompute, remark = recompute_of(args)
    _log_approximations(args, remark)
    model = _model(args)
    arguments = {
        "model": model,
        "mtp": True if model is not None and model.get("num_nextn_predict_layers") else None,
        "dtype": _dtype(args),
        "recompute": recompute,
        "find_phases": False,
        **sizes,
        **options,
    }
    if arguments.get("mode") == "auto":
        arguments["mode"] = "estimate"
    if getattr(args, "rank", None) is not None:
        arguments["rank"] = args.rank
    monitor = Monitor(**{**arguments, **more})
    has_rows = monitor.rank == 0 and "wandb" in sys.modules  # the monitor's own
    _loop = _Loop(monitor, args, sizes["data_parallel"], more.get("wandb") is not False and not has_rows)
    return monitor


def get_perf_monitor() -> Monitor | None:
    """The monitor, if there is one."""
    return None if _loop is None else _loop.monitor


def perf_monitor_start_iteration(iteration: int) -> None:
    """An iteration begins."""
    if _loop is not None:
        _loop.begin(iteration)


def perf_monitor_end_iteration(iteration: int, writer: Any = None, wandb_writer: Any = None, **values: Any) -> None:
    """The iteration has ended; ``values``: loss, grad_norm, learning_rate.

    ``wandb_writer`` gets perf/* at every log interval.  ``writer`` is not needed: under ``--tensorboard-dir`` the
    monitor's own event files hold performance/* and memory/*.
    """
    if _loop is not None:
        _loop.end(iteration, wandb_writer, values)


def perf_monitor_end_training(writer: Any = None, wandb_writer: Any = None) -> None:
    """Training has ended: write what is left."""
    global _loop
    if _loop is not None:
        _loop.finish(wandb_writer)
        _loop = None
