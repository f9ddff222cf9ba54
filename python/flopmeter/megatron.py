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
from functools import partial
from typing import Any

from flopmeter import _flopmeter
from flopmeter._megatron_model import model_config
from flopmeter._monitor import Monitor
from flopmeter._setup import say

__all__ = [
    "add_arguments",
    "get_perf_monitor",
    "initialize_perf_monitor",
    "model_config",
    "monitor_options",
    "perf_monitor_end_iteration",
    "perf_monitor_end_training",
    "perf_monitor_start_iteration",
]

_monitor: Monitor | None = None
_batch: tuple[int, int] | None = None


def _rows() -> list[dict[str, Any]]:
    """The options that have a flag of their own; --tensorboard-dir and the like are Megatron's."""
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
    return parser


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
    """The model of the arguments; without one the run is watched all the same, without FLOPs."""
    try:
        return model_config(args)
    except ValueError as error:
        say(f"{error}; FLOPs and MFU stay empty")
        return None


def _dtype(args: argparse.Namespace) -> str:
    if getattr(args, "fp8", None):
        return "fp8"
    return "bf16" if getattr(args, "bf16", False) else "fp16" if getattr(args, "fp16", False) else "fp32"


def initialize_perf_monitor(args: argparse.Namespace, **more: Any) -> Monitor | None:
    """Start the monitor if ``--enable-perf-monitor`` was given.

    FLOPs come from the arguments, since fused kernels hide from a count: each rank's are an even share of its
    data-parallel replica's, so that the ranks together have those of the global batch.  ``more``: arguments of Monitor.
    """
    global _monitor, _batch
    options = monitor_options(args)
    if options.pop("enabled", "false") in (False, "false"):
        _monitor = None
        return None
    sizes = _sizes(args)
    of_a_replica = int(getattr(args, "global_batch_size", None) or 0) // sizes["data_parallel"]
    samples = of_a_replica or int(getattr(args, "micro_batch_size", None) or 1)
    _batch = (samples, samples * int(args.seq_length))
    recompute = {"full": "full", "selective": "selective"}.get(getattr(args, "recompute_granularity", None) or "", "none")
    arguments = {
        "model": _model(args),
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
    _monitor = Monitor(**{**arguments, **more})
    return _monitor


def get_perf_monitor() -> Monitor | None:
    """The monitor, if there is one."""
    return _monitor


def perf_monitor_start_iteration(iteration: int) -> None:
    """An iteration begins."""
    if _monitor is not None and _batch is not None:
        _monitor.begin_step(samples=_batch[0], tokens=_batch[1], step=iteration)


def perf_monitor_end_iteration(iteration: int, writer: Any = None, wandb_writer: Any = None, **values: Any) -> None:
    """The iteration has ended; ``values``: loss, grad_norm, learning_rate.  Writers are Megatron's, and not needed."""
    if _monitor is not None:
        _monitor.end_step(**values)


def perf_monitor_end_training(writer: Any = None, wandb_writer: Any = None) -> None:
    """Training has ended: write what is left."""
    global _monitor
    if _monitor is not None:
        _monitor.finish()
        _monitor = None
