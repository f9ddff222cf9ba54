# SPDX-License-Identifier: Apache-2.0
"""Structure, without torch: flags, hooks and files are there."""

import sys

from flopmeter import megatron

for name in ("initialize_perf_monitor", "perf_monitor_start_iteration", "perf_monitor_end_iteration", "perf_monitor_end_training"):
    assert callable(getattr(megatron, name))
assert "torch" not in sys.modules
print("ok")
