# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM and FlagScale: the ``--perf-*`` flags, the model from Megatron's arguments, and the hooks of the loop.

    parser = flopmeter.integrations.megatron.add_arguments(parser)
    args = parser.parse_args()
    initialize_perf_monitor(args)
    for iteration in ...:
        perf_monitor_start_iteration(iteration)
        train_step(...)
        perf_monitor_end_iteration(iteration)
    perf_monitor_end_training()

Under ``flopmeter run`` and ``flopmeter env`` none of this is needed: see ``megatron_training``.
"""

from __future__ import annotations

import argparse
from typing import Any

from flopmeter.integrations import megatron_training
from flopmeter.integrations.megatron_flags import add_arguments, monitor_options
from flopmeter.integrations.megatron_model import model_config
from flopmeter.log import log_once
from flopmeter.monitor import Monitor

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

add_perf_monitor_args = add_arguments  # FlagScale's name
_initialized = False  # a program that disables the monitor calls the other hooks all the same


def initialize_perf_monitor(args: argparse.Namespace, **more: Any) -> Monitor | None:
    """Start the monitor if ``--enable-perf-monitor`` was given; one that still runs is finished.

    FLOPs come from the arguments, since fused kernels hide from a count: each rank's are an even share of its
    data-parallel replica's, so that the ranks together have those of the global batch.  ``more``: arguments of Monitor.
    """
    global _initialized
    _initialized = True
    perf_monitor_end_training()
    if not getattr(args, "enable_perf_monitor", False):
        return None
    options = monitor_options(args)
    return megatron_training.start(args, **{**options, **more}).monitor


def get_perf_monitor() -> Monitor | None:
    """The monitor, if there is one."""
    loop = megatron_training.current()
    return None if loop is None else loop.monitor


def perf_monitor_start_iteration(iteration: int, image_grid_thw: Any = None) -> None:
    """An iteration begins; ``image_grid_thw``: a row (t, h, w) for each image of this replica, in patches."""
    loop = megatron_training.current()
    if loop is not None and not megatron_training.marks_steps():
        loop.begin(iteration, image_grid_thw)
    elif loop is None and not _initialized:
        log_once("no iteration is recorded: call initialize_perf_monitor(args) before perf_monitor_start_iteration()")


def perf_monitor_end_iteration(iteration: int, writer: Any = None, wandb_writer: Any = None, **values: Any) -> None:
    """The iteration has ended; ``values``: loss, grad_norm, learning_rate.

    ``wandb_writer`` gets perf/*, performance/*, and memory/* at every log interval.  ``writer`` is not needed: under
    ``--tensorboard-dir`` the monitor's own event files contain them.
    """
    loop = megatron_training.current()
    if loop is None:
        return
    if megatron_training.marks_steps():
        loop.monitor.log(**values)
    else:
        loop.end(iteration, wandb_writer, values)


def perf_monitor_end_training(writer: Any = None, wandb_writer: Any = None) -> None:
    """Training has ended: write the remaining records."""
    megatron_training.stop(wandb_writer)
