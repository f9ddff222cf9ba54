# SPDX-License-Identifier: Apache-2.0
"""What the work is set against: a given peak, else a measured one, else the catalog's, else the CPU's formula, else none."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from flopmeter import _flopmeter
from flopmeter._flopmeter import PeakTable


def given(tflops: float, device: str = "given") -> PeakTable:
    """One peak for every dtype: the caller says what the run is to be measured by."""
    if not 0 < tflops < 1e9:
        raise ValueError(f"peak_tflops is {tflops!r} but must be the TFLOP/s of one device, a positive number")
    return PeakTable(device, "given", dict.fromkeys(_flopmeter.dtype_names, tflops * 1e12))


def _cache_file() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "flopmeter", "peaks.json")


def measured() -> PeakTable | None:
    """What ``flopmeter peak`` measured on this processor with this number of threads; None where it did not."""
    try:
        with open(_cache_file(), encoding="utf-8") as file:
            cache = json.load(file)
        machines = cache["machines"] if cache["schema"] == "flopmeter.peaks/1" else []
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            processor = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return None
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else None
    for machine in reversed(machines):  # the newest last
        if machine.get("processor") == processor and threads in (None, machine.get("threads")):
            peaks = {dtype: peak["flops_per_second"] for dtype, peak in machine["peaks"].items()}
            source = f"measured: {_cache_file()}, {machine.get('threads')} threads, torch {machine.get('torch')}"
            return PeakTable(processor, source, peaks) if peaks else None
    return None


def torch_device_name(device: Any = None) -> str | None:
    """The name that torch's driver gives the device; None for a CPU.  Starts no driver that does not run yet."""
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


def _is_torch_device(device: Any) -> bool:
    if not isinstance(device, str):
        return True
    kind = device.split(":")[0]
    return kind in ("cpu", "cuda", "xpu", "npu", "mps", "hpu", "musa", "mlu")


def find_peaks(
    device: Any = None, peak_tflops: float | str | None = None, sparse: bool = False, measured_first: bool = True
) -> PeakTable:
    """The peaks of ``device`` by dtype, with their source; an empty table where nothing is known.

    ``device``: a name of the catalog ("h100"), a torch device, "cpu", or None for the one that torch uses.
    ``peak_tflops``: TFLOP/s of one device, or "measured".
    """
    if peak_tflops == "measured":
        table = measured()
        if table is None:
            raise ValueError("peak_tflops='measured': nothing was measured on this machine yet; run: flopmeter peak")
        return table
    if peak_tflops is not None:
        return given(float(peak_tflops), str(device) if device is not None else "given")
    if isinstance(device, str) and not _is_torch_device(device):
        return _flopmeter.catalog_peaks(device, sparse)
    name = torch_device_name(device)
    if name is not None:
        try:
            return _flopmeter.catalog_peaks(name, sparse)
        except ValueError as error:
            return PeakTable(name, f"none: {error}", {})
    if measured_first and (table := measured()) is not None:
        return table
    try:
        return _flopmeter.cpu_peaks()
    except (OSError, ValueError, RuntimeError) as error:
        return PeakTable("cpu", f"none: {error}", {})
