# SPDX-License-Identifier: Apache-2.0
"""The peak: specified by the user, else measured, else from the catalog, else from the CPU formula, else none."""

from __future__ import annotations

import sys
from typing import Any

from flopmeter import _flopmeter
from flopmeter._flopmeter import PeakTable
from flopmeter.log import log_once


def _given(tflops: Any, device: str) -> PeakTable:
    """One peak for all dtypes."""
    try:
        peak = float(tflops)
    except (TypeError, ValueError):
        peak = 0
    if not 0 < peak < 1e9:
        raise ValueError(f"peak_tflops is {tflops!r} but must be the TFLOP/s of one device, a positive number, or 'measured'")
    return PeakTable(device, "user", dict.fromkeys(_flopmeter.dtype_names, peak * 1e12))


def measured() -> PeakTable | None:
    """Result of ``flopmeter peak`` for this processor and the number of threads of torch; None if there is none."""
    return _flopmeter.measured_peaks(_torch_threads())


def _torch_threads() -> int | None:
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch else None


def torch_device_name(device: Any = None) -> str | None:
    """Name of the device from torch; None for a CPU. Does not initialize a driver."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if device is None:
        device = torch.device("cuda") if torch.cuda.is_available() and torch.cuda.is_initialized() else torch.device("cpu")
    device = torch.device(device)
    driver: Any = getattr(torch, device.type, None)
    if device.type in ("cpu", "meta") or not hasattr(driver, "get_device_name"):
        return None
    return driver.get_device_name(device)


def _cpu_name() -> str:
    try:
        return _flopmeter.cpu_peaks(None).device
    except (OSError, ValueError, RuntimeError):
        return "cpu"


def _is_torch_device(device: Any) -> bool:
    if not isinstance(device, str):
        return True
    kind = device.split(":")[0]
    return kind in ("cpu", "cuda", "xpu", "npu", "mps", "hpu", "musa", "mlu")


def find_peaks(device: Any = None, peak_tflops: float | str | None = None, sparse: bool = False) -> PeakTable:
    """The peaks of ``device`` by dtype, with their source; an empty table if they are unknown.

    ``device``: a name of the catalog ("h100"), a torch device, "cpu", or None for the device that torch uses.
    ``peak_tflops``: TFLOP/s of one device, or "measured".
    """
    if peak_tflops == "measured":
        table = measured()
        if table is None:
            threads = _torch_threads()
            with_threads = f" with {threads} thread{'s' if threads > 1 else ''}" if threads else ""
            raise ValueError(f"no measured peak for this machine{with_threads}; run: flopmeter peak")
        return table
    if peak_tflops is not None:
        return _given(peak_tflops, str(device) if device is not None else torch_device_name() or _cpu_name())
    if isinstance(device, str) and not _is_torch_device(device):
        return _flopmeter.catalog_peaks(device, sparse)
    name = torch_device_name(device)
    if name is not None:
        try:
            return _flopmeter.catalog_peaks(name, sparse)
        except ValueError as error:
            return PeakTable(name, f"none: {error}", {})
    if (table := measured()) is not None:
        return table
    try:
        if _flopmeter.measured_peaks(None) is not None:
            log_once(f"the measured peak is of another number of threads than torch's {_torch_threads()}; run: flopmeter peak")
        return _flopmeter.cpu_peaks(_torch_threads())
    except (OSError, ValueError, RuntimeError) as error:
        return PeakTable("cpu", f"none: {error}", {})
