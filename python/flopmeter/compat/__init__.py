# SPDX-License-Identifier: Apache-2.0
"""Names and signatures of training scripts that compute MFU themselves, on top of the native library.

Functions always return a float: 0.0 and a printed line if a value is unknown, at most 1.0 for an MFU.
"""

from __future__ import annotations

import importlib
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
_HOOKS = (
    "get_perf_monitor",
    "initialize_perf_monitor",
    "perf_monitor_end_iteration",
    "perf_monitor_end_training",
    "perf_monitor_start_iteration",
)
_FLAGSCALE = "flagscale.train.perf_monitor"
# Modules of other programs, and the names that they have: those of this package, and of its module on the left.
_MODULES: dict[str, dict[str, tuple[str, ...]]] = {
    "training": {},
    "training.utils": {},
    "training.utils.monitor": {"flopmeter.compat": tuple(name for name in __all__ if name != "install")},
    "flagscale": {},
    "flagscale.train": {},
    _FLAGSCALE: {
        "flopmeter.integrations.flagscale": _HOOKS,
        "flopmeter.compat._flagscale": ("FLOPSMeasurementCallback", "PerformanceMonitor"),
    },
    f"{_FLAGSCALE}.hooks": {"flopmeter.integrations.flagscale": (*_HOOKS, "__getattr__")},
    f"{_FLAGSCALE}.perf_metrics": {
        "flopmeter.compat._flagscale": (
            "FLOPSMeasurementCallback",
            "ModelFLOPSCalculator",
            "PerformanceMonitor",
            "TFLOPSMetrics",
            "get_num_microbatches",
        )
    },
    f"{_FLAGSCALE}.perf_logger": {"flopmeter.compat._flagscale": ("PerfMonitorLogger",)},
    f"{_FLAGSCALE}.flops_calculator": {"flopmeter.compat._flagscale": ("FLOPSFormulas",)},
}


class _Names(MetaPathFinder, Loader):
    """Provides these modules, or the missing parts of existing packages ``training`` and ``flagscale``.

    The last of all finders, so modules of the program take precedence.
    """

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Spec of a module with one of these names; None for other names."""
        if fullname not in _MODULES:
            return None
        is_package = any(name.startswith(fullname + ".") for name in _MODULES)
        return ModuleSpec(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        for source, names in _MODULES[module.__name__].items():
            owner = importlib.import_module(source)
            vars(module).update({name: getattr(owner, name) for name in names})
            vars(module).setdefault("__all__", []).extend(name for name in names if not name.startswith("_"))


def install() -> None:
    """Make ``from training.utils.monitor import …`` and ``from flagscale.train.perf_monitor import …`` work.

    Modules of these names that the program has stay as they are.
    """
    if not any(isinstance(finder, _Names) for finder in sys.meta_path):
        sys.meta_path.append(_Names())
