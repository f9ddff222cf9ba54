# SPDX-License-Identifier: Apache-2.0
"""Names and signatures of training scripts that compute MFU themselves, on top of the native library.

Functions always return a float: 0.0 and a printed line if a value is unknown, at most 1.0 for an MFU.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from flopmeter.compat._dummy import _create_dummy_batch_for_profiling
from flopmeter.compat._estimate import (
    _estimate_flops_fallback,
    _estimate_forward_flops,
    _get_actual_sequence_length,
    calculate_mfu,
    profile_model_flops,
)
from flopmeter.compat._measure import (
    _measure_flops_with_profiler,
    calculate_mfu_with_profiler,
    get_gpu_peak_flops,
)
from flopmeter.compat._modes import calculate_precise_mfu
from flopmeter.compat._training_monitor import TrainingMonitor

__all__ = [
    "TrainingMonitor",
    "_create_dummy_batch_for_profiling",
    "_estimate_flops_fallback",
    "_estimate_forward_flops",
    "_get_actual_sequence_length",
    "_measure_flops_with_profiler",
    "calculate_mfu",
    "calculate_mfu_with_profiler",
    "calculate_precise_mfu",
    "get_gpu_peak_flops",
    "install",
    "profile_model_flops",
]
_MONITOR = "training.utils.monitor"


class _Names(MetaPathFinder, Loader):
    """Provides ``training.utils.monitor``, or the missing parts of an existing package ``training``.

    The last of all finders, so modules of the program take precedence.
    """

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Spec of a module with one of these names; None for other names."""
        if fullname not in ("training", "training.utils", _MONITOR):
            return None
        return ModuleSpec(fullname, self, is_package=fullname != _MONITOR)

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        if module.__name__ == _MONITOR:
            vars(module).update({name: globals()[name] for name in __all__ if name != "install"})


def install() -> None:
    """Make ``from training.utils.monitor import …`` work, unless the program has a module of that name."""
    if not any(isinstance(finder, _Names) for finder in sys.meta_path):
        sys.meta_path.append(_Names())
