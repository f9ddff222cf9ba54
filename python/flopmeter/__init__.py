# SPDX-License-Identifier: Apache-2.0
"""How much of the hardware does useful work: MFU of a training run, and exact FLOP counts of what PyTorch runs.

Importing this needs neither torch nor a GPU; what needs torch says so when it is used.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from flopmeter._count import Count, count
from flopmeter._estimate import estimate
from flopmeter._flopmeter import __version__
from flopmeter._flopmeter import option_rows as options
from flopmeter._models import register_model
from flopmeter._monitor import Monitor
from flopmeter._ops import register_op
from flopmeter._region import Region, region
from flopmeter._setup import register_sink
from flopmeter._survey import Survey, survey

if TYPE_CHECKING:
    from flopmeter import compat, hf, lightning, megatron

__all__ = [
    "Count",
    "Monitor",
    "Region",
    "Survey",
    "__version__",
    "compat",
    "count",
    "estimate",
    "hf",
    "lightning",
    "megatron",
    "options",
    "region",
    "register_model",
    "register_op",
    "register_sink",
    "survey",
]


def __getattr__(name: str) -> ModuleType:
    # These import the frameworks they serve.
    if name in ("compat", "hf", "lightning", "megatron"):
        return importlib.import_module(f"flopmeter.{name}")
    raise AttributeError(f"module 'flopmeter' has no attribute {name!r}")
