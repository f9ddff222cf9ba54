# SPDX-License-Identifier: Apache-2.0
"""Kernels of torch.compile that contain matmuls: no operator shows their FLOPs."""

from __future__ import annotations

import sys


def hidden_kernels() -> list[str]:
    """Names of such kernels in the code compiled so far: Triton templates and flex_attention."""
    cache = sys.modules.get("torch._inductor.codecache")
    names = {name for module in cache.PyCodeCache.modules for name in vars(module)} if cache is not None else set()
    return sorted(
        name
        for name in names
        if name.startswith("triton_tem_") or (name.startswith(("triton_", "cpp_")) and "flex_attention" in name)
    )
