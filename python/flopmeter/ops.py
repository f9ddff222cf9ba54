# SPDX-License-Identifier: Apache-2.0
"""FLOP costs for operators that are not in the catalog."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

from flopmeter.torch.adapter import torch_adapter


def _is_module(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def register_op(name: str, rule: Callable[..., int | None]) -> None:
    """Register ``rule`` as the FLOP cost of ``name``.

    ``name`` is a dispatcher operator (``"mylib::fused_mlp"``), a Python function or Triton kernel with its module
    (``"mylib.kernels::fused_mlp"``), or a TileLang kernel (``"tilelang::fused_mlp"``).  ``rule`` is called after each call with its arguments in order: a tuple of extents for a
    tensor, a tuple for a list, a list of extents for a list of tensors, an int for an int or bool, None for other types. If it
    has a parameter ``out_shape``, it also gets the extents of the first result. It returns FLOPs (a multiply-add is two), or
    None if they are unknown: such calls appear in ``unsupported``.
    """
    import inspect  # slow to import, and only needed here

    wants_output = "out_shape" in inspect.signature(rule).parameters

    def call(out_shape: tuple[int, ...] | None, *args: object) -> int | None:
        return rule(*args, out_shape=out_shape) if wants_output else rule(*args)

    adapter = torch_adapter()
    try:
        adapter.register_op(name, call)
    except KeyError:
        if not _is_module(name.split("::")[0]):
            raise
        from flopmeter.torch.callables import count_function

        adapter.register_function(name, call)
        count_function(name)
