# SPDX-License-Identifier: Apache-2.0
"""Measures the model FLOPs utilization (MFU) of training runs, and counts the FLOPs of PyTorch code exactly.

The import needs neither torch nor a GPU, and takes a few milliseconds: each name is loaded on first use.
"""

import importlib

TYPE_CHECKING = False  # True for type checkers; importing the module typing would take longer than this one
if TYPE_CHECKING:
    from flopmeter import compat, integrations
    from flopmeter.counting import Count, count
    from flopmeter.estimation import estimate
    from flopmeter._flopmeter import __version__
    from flopmeter._flopmeter import option_rows as options
    from flopmeter.models import register_model
    from flopmeter.monitor import Monitor
    from flopmeter.ops import register_op
    from flopmeter.torch.region import Region, region
    from flopmeter.records import register_sink
    from flopmeter.op_profile import OpProfiler, profile

__all__ = [
    "Count",
    "Monitor",
    "Region",
    "OpProfiler",
    "__version__",
    "compat",
    "count",
    "estimate",
    "integrations",
    "options",
    "region",
    "register_model",
    "register_op",
    "register_sink",
    "profile",
]

_HOMES = {
    "Count": "counting",
    "Monitor": "monitor",
    "OpProfiler": "op_profile",
    "Region": "torch.region",
    "__version__": "_flopmeter",
    "count": "counting",
    "estimate": "estimation",
    "profile": "op_profile",
    "options": "_flopmeter",
    "region": "torch.region",
    "register_model": "models",
    "register_op": "ops",
    "register_sink": "records",
}


def __getattr__(name: str) -> object:
    if name in ("compat", "integrations"):
        return importlib.import_module(f"flopmeter.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'flopmeter' has no attribute {name!r}")
    home = importlib.import_module(f"flopmeter.{_HOMES[name]}")
    found = globals()[name] = getattr(home, "option_rows" if name == "options" else name)
    return found


def __dir__() -> list[str]:
    return __all__
