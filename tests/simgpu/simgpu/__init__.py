# SPDX-License-Identifier: Apache-2.0
"""A simulated accelerator for torch: device `simgpu`, module `torch.simgpu`. See ../README.md."""

import json
import os

import torch

from .build import load_extension

_C = load_extension()

from . import device_module  # noqa: E402  (registers torch.simgpu, needs _C)
from .device_module import COLLECTIVES, NAME  # noqa: E402
from .truth import Truth  # noqa: E402


def configure(**settings):
    """Sets settings by name, for example `configure(launch_us=4, values=True)`; returns the old ones."""
    old = {name: _C.get(name) for name in settings}
    for name, value in settings.items():
        _C.set(name, float(value))
    return old


def settings():
    """All settings and their values."""
    return {name: _C.get(name) for name in _C.setting_names()}


def mark(name):
    """Marks the start of a phase in the script; takes no device time."""
    _C.mark(name)


def reset():
    """Clears kernels, calls, and marks; the device keeps running."""
    _C.reset_log()


def truth():
    """Truth since the last reset, after waiting for the device."""
    _C.drain()
    return Truth(_C.intervals(), _C.calls(), _C.marks(), settings())


def counters():
    """Number of calls other than launches since the last reset; see Truth.counters."""
    return truth().counters()


configure(**json.loads(os.environ.get("SIMGPU_SETTINGS", "{}")))
__all__ = ["COLLECTIVES", "NAME", "Truth", "configure", "counters", "device_module", "mark", "reset", "settings", "truth", "torch"]
