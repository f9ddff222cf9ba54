# SPDX-License-Identifier: Apache-2.0
"""Properties of a device of torch, from its driver."""

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


def _allocator(device: Any) -> Any:
    """The module that reports the memory of the device: that of its backend, else torch.accelerator; None if there is none."""
    torch, kind = loaded_torch(), str(device).split(":")[0]
    if torch is None or kind in ("cpu", "meta"):
        return None
    backend = getattr(torch, kind, None)
    if callable(getattr(backend, "max_memory_allocated", None)) and callable(getattr(backend, "memory_reserved", None)):
        return backend
    accelerator: Any = getattr(torch, "accelerator", None)  # torch 2.9 and later: for all backends
    if not callable(getattr(accelerator, "memory_allocated", None)):
        return None
    current = accelerator.current_accelerator()
    return accelerator if current is not None and current.type == kind else None


def has_own_memory(device: Any) -> bool:
    """Whether torch's allocator reports the memory of the device."""
    return _allocator(device) is not None


def memory_bytes(device: Any) -> tuple[int, int, int]:
    """Bytes that torch's allocator holds now, has held at most, and has reserved; negative if not known."""
    allocator = _allocator(device)
    if allocator is None or hasattr(allocator, "current_accelerator") and not allocator.memory_stats(device):
        return -1, -1, -1
    return allocator.memory_allocated(device), allocator.max_memory_allocated(device), allocator.memory_reserved(device)
