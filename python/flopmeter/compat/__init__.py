# SPDX-License-Identifier: Apache-2.0
"""Names, signatures and manners of training scripts that measure MFU by hand, over the native library.

Functions here return a float always: 0.0 and a printed line where a figure is not known, at most 1.0 for an MFU.
"""

from __future__ import annotations

import sys
from types import ModuleType

from flopmeter.compat._estimate import (
    _estimate_flops_fallback,
    _estimate_forward_flops,
    _get_actual_sequence_length,
    calculate_mfu,
    profile_model_flops,
)
from flopmeter.compat._measure import (
    _create_dummy_batch_for_profiling,
    _measure_flops_with_profiler,
    calculate_mfu_with_profiler,
    calculate_precise_mfu,
    get_gpu_peak_flops,
)
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


def install() -> None:
    """Make ``from training.utils.monitor import …`` find these names, unless the program has a module of that name."""
    this = sys.modules[__name__]
    parent: ModuleType | None = None
    for name in ("training", "training.utils", "training.utils.monitor"):
        module = sys.modules.get(name)
        if module is None:
            module = ModuleType(name, "Names of flopmeter.compat.")
            module.__path__ = []  # a package, so that its parts can be imported
            sys.modules[name] = module
            if parent is not None:
                setattr(parent, name.rpartition(".")[2], module)
        parent = module
    for name in __all__:
        if not hasattr(parent, name):
            setattr(parent, name, getattr(this, name))
