// SPDX-License-Identifier: Apache-2.0
//
// Reads what /proc and /sys say about the processor.  Only the cores this process may use count:
// those of its affinity mask, each physical core once, and no more than its cgroup's CPU quota.
#pragma once

#include <flopmeter/core/cpu_info.h>
#include <flopmeter/core/result.h>

#include <string>

namespace flopmeter {

/// `root` is "" for this machine, or a folder that holds a copy of the few files of another.  The
/// clock is cpufreq's maximum; without cpufreq the "@ 2.10GHz" of the model name; in a virtual
/// machine the "cpu MHz" that the hypervisor tells.  A bare machine's "cpu MHz" is the clock of the
/// moment and is not used.
Result<CpuInfo> read_cpu_info(const std::string& root = "");

}  // namespace flopmeter
