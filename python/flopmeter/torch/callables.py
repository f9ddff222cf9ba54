# SPDX-License-Identifier: Apache-2.0
"""Counts Python functions that do not pass the dispatcher: each is replaced in its module by a counting wrapper.

The catalog names the functions by module and attribute; ``register_op`` adds functions and Triton kernels of the user.
"""

from __future__ import annotations

import inspect
from functools import partial
from types import ModuleType
from typing import Any

from flopmeter import _flopmeter
from flopmeter.torch.imports import after_import
from flopmeter.torch.patch import replace_function


def _parameters(function: Any) -> list[str]:
    """Names of the parameters by position; none for most functions of extension modules, and for any number of arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [] if any(each.kind is each.VAR_POSITIONAL for each in parameters) else [each.name for each in parameters]


def _count_in(attribute: str, module: ModuleType) -> None:
    name = f"{module.__name__}::{attribute}"
    original = vars(module).get(attribute)  # attributes that a module computes on demand stay on demand
    if original is None or isinstance(original, _flopmeter.CountedFunction):
        return
    if hasattr(original, "run") and hasattr(original, "arg_names"):
        # A Triton kernel: its outermost object, so that launches for autotuning, which happen inside, are not counted.
        if not isinstance(original.run, _flopmeter.CountedFunction):
            original.run = _flopmeter.counted_function(name, original.run, list(original.arg_names))
    else:
        replace_function(module, attribute, original, _flopmeter.counted_function(name, original, _parameters(original)))


def count_function(name: str) -> None:
    """Count the Python function ``module::attribute``, now or when its module is imported."""
    module, attribute = name.split("::")
    after_import(module, partial(_count_in, attribute))


def install() -> None:
    """Count the Python functions of the catalog."""
    for name in _flopmeter.python_functions():
        count_function(name)
