// SPDX-License-Identifier: Apache-2.0
//
// Reads processor information from /proc and /sys. Counts only the cores that this process may use:
// physical cores of its affinity mask, limited by the CPU quota of its cgroup.
#pragma once

#include <flopmeter/core/cpu_info.h>
#include <flopmeter/core/result.h>

#include <string>

namespace flopmeter {

/// `root` is "" for this machine, or a folder with copies of the files of another machine. The
/// clock is the maximum of cpufreq; without cpufreq, the "@ 2.10GHz" of the model name; in a
/// virtual machine, the "cpu MHz" of the hypervisor. On bare metal, "cpu MHz" is the current clock
/// and is not used.
Result<CpuInfo> read_cpu_info(const std::string& root = "");

}  // namespace flopmeter
