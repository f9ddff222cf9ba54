# SPDX-License-Identifier: Apache-2.0
"""Facts about a device of torch that its driver knows."""

from __future__ import annotations

from typing import Any

from flopmeter.torch import loaded_torch


def gpu_uuid(device: Any) -> str | None:
    """NVML's name of a CUDA device; None for any other device."""
    torch = loaded_torch()
    if torch is None or not str(device).startswith("cuda") or torch.version.cuda is None or not torch.cuda.is_initialized():
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def has_own_memory(device: Any) -> bool:
    """Whether torch's allocator reports the memory of the device."""
    return loaded_torch() is not None and str(device).split(":")[0] in ("cuda", "xpu", "npu")


def memory_bytes(device: Any) -> tuple[int, int, int]:
    """Bytes that torch's allocator holds now, has held at most, and has reserved."""
    driver = getattr(loaded_torch(), str(device).split(":")[0])
    return driver.memory_allocated(device), driver.max_memory_allocated(device), driver.memory_reserved(device)
