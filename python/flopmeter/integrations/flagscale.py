# SPDX-License-Identifier: Apache-2.0
"""FlagScale's performance monitor: its key ``enable_perf_monitor`` starts flopmeter, in the folder that FlagScale names.

FlagScale's loop binds the five functions of ``flagscale.train.perf_monitor.hooks`` when it is imported, which is after the
import of the hooks.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flopmeter.guard import log_failure
from flopmeter.integrations import megatron

FIRST_ROW = {"first_row": True}  # FlagScale's log begins with the first step
_FUNCTIONS = (
    "initialize_perf_monitor",
    "get_perf_monitor",
    "perf_monitor_start_iteration",
    "perf_monitor_end_iteration",
    "perf_monitor_end_training",
)


def initialize_perf_monitor(args: Any) -> Any:
    """Start the monitor if the key is on; else None."""
    try:
        return megatron.initialize_perf_monitor(args, **FIRST_ROW)
    except Exception as error:  # the run continues without a monitor
        log_failure(error)
        return None


def perf_monitor_start_iteration(iteration: int) -> None:
    """An iteration begins; FlagScale counts from 0."""
    megatron.perf_monitor_start_iteration(iteration + 1)


def perf_monitor_end_iteration(iteration: int, writer: Any = None, wandb_writer: Any = None) -> None:
    """The iteration has ended."""
    megatron.perf_monitor_end_iteration(iteration + 1, writer, wandb_writer)


def __getattr__(name: str) -> Any:
    """FlagScale's hooks keep the monitor in ``_perf_monitor_callback``."""
    if name == "_perf_monitor_callback":
        return megatron.get_perf_monitor()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


get_perf_monitor = megatron.get_perf_monitor
perf_monitor_end_training = megatron.perf_monitor_end_training


def install(module: ModuleType) -> None:
    """Replace the functions of FlagScale's hooks; an AttributeError if one of them is missing."""
    missing = [name for name in _FUNCTIONS if not callable(getattr(module, name, None))]
    if missing:
        raise AttributeError(f"it has no function {', '.join(missing)}")
    vars(module).update({name: globals()[name] for name in _FUNCTIONS})
