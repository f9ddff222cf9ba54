# SPDX-License-Identifier: Apache-2.0
"""Everything that works with PyTorch.  Nothing here imports torch before the program does."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def loaded_torch() -> ModuleType | None:
    """Torch, if the program has imported it."""
    return sys.modules.get("torch")


def as_module(model: Any) -> Any:
    """The model if it is a module of torch, else None."""
    torch = loaded_torch()
    return model if torch is not None and isinstance(model, torch.nn.Module) else None
