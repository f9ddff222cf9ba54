# SPDX-License-Identifier: Apache-2.0
"""Counts TileLang kernels that multiply: by a rule of the user for "tilelang::<kernel>", else as unsupported.

A kernel is examined once, when its compiled function is set.  Other kernels run unchanged.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from flopmeter import _flopmeter
from flopmeter.guard import describe_error
from flopmeter.log import log_once
from flopmeter.torch.imports import after_import

_MATMUL = re.compile(r"gemm_[rs]|mma_(sync|sp|ss|rs|ts|ws)|mfma|wmma::")  # calls in the generated source


def _counted(kernel: Any, function: Any) -> Any:
    if not _MATMUL.search(str(kernel.kernel_source)):
        return function
    name = kernel.prim_func.attrs["global_symbol"] if kernel.prim_func is not None else "kernel"
    return _flopmeter.counted_function(f"tilelang::{name}", function, [])


def _examine_kernels(module: ModuleType) -> None:
    def set_attribute(self: Any, name: str, value: Any) -> None:
        if name == "torch_function" and callable(value):
            try:
                value = _counted(self, value)
            except Exception as error:  # another version of TileLang
                log_once(f"a TileLang kernel may not be counted: {describe_error(error)}")
        object.__setattr__(self, name, value)

    module.JITKernel.__setattr__ = set_attribute


def install() -> None:
    """Count such kernels from now on."""
    after_import("tilelang.jit.kernel", _examine_kernels)
