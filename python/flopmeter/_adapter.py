# SPDX-License-Identifier: Apache-2.0
"""Loads the torch adapter when it is first needed, or says in one line why it cannot."""

from __future__ import annotations

import importlib
from types import ModuleType


class AdapterUnavailable(ImportError):
    """Torch, or the adapter built for it, is not here."""


def torch_adapter() -> ModuleType:
    """The compiled adapter."""
    # torch first: the adapter binds to the libraries that it loads.
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise AdapterUnavailable(
            f"flopmeter: counting needs PyTorch, and 'import torch' failed ({error}); install torch"
        ) from None
    try:
        built_for = importlib.import_module("flopmeter._torch_build").TORCH_VERSION
    except ImportError:
        raise AdapterUnavailable(
            "flopmeter: this build has no torch adapter; build with -DFLOPMETER_TORCH="
            '"$(python -c \'import torch; print(torch.utils.cmake_prefix_path)\')"'
        ) from None
    running = torch.__version__.split("+")[0]
    if running != built_for:
        raise AdapterUnavailable(
            f"flopmeter: the torch adapter was built for torch {built_for}, but torch {running} runs here; "
            "build it again for this torch"
        )
    try:
        return importlib.import_module("flopmeter._torch")
    except ImportError as error:
        raise AdapterUnavailable(f"flopmeter: the torch adapter does not load: {error}") from None
