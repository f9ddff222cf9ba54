# SPDX-License-Identifier: Apache-2.0
"""How much of the hardware does useful work: MFU of a training run, and exact FLOP counts of what PyTorch runs.

Importing this needs neither torch nor a GPU, and takes a few milliseconds: each name is loaded when it is first used.
"""

import importlib

TYPE_CHECKING = False  # as type checkers know it; the module typing would take longer to import than this one
if TYPE_CHECKING:
    from flopmeter import compat, hf, lightning, megatron
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

_HOMES = {
    "Count": "_count",
    "Monitor": "_monitor",
    "Region": "_region",
    "Survey": "_survey",
    "__version__": "_flopmeter",
    "count": "_count",
    "estimate": "_estimate",
    "options": "_flopmeter",
    "region": "_region",
    "register_model": "_models",
    "register_op": "_ops",
    "register_sink": "_setup",
    "survey": "_survey",
}


def __getattr__(name: str) -> object:
    if name in ("compat", "hf", "lightning", "megatron"):  # these import the frameworks they serve
        return importlib.import_module(f"flopmeter.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'flopmeter' has no attribute {name!r}")
    home = importlib.import_module(f"flopmeter.{_HOMES[name]}")
    found = globals()[name] = getattr(home, "option_rows" if name == "options" else name)
    return found


def __dir__() -> list[str]:
    return __all__
