# SPDX-License-Identifier: Apache-2.0
"""How much of the hardware does useful work: exact FLOP counts of what PyTorch runs.

Importing this needs neither torch nor a GPU; what needs torch says so when it is used.
"""

from flopmeter._count import Count, count
from flopmeter._flopmeter import __version__
from flopmeter._ops import register_op
from flopmeter._region import Region, region
from flopmeter._survey import Survey, survey

__all__ = ["Count", "Region", "Survey", "__version__", "count", "region", "register_op", "survey"]
