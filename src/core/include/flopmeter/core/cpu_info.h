// SPDX-License-Identifier: Apache-2.0
//
// CpuInfo: kernel information about the processor that this process may use. `telemetry` reads it,
// `catalog` computes a peak from it; unknown values are empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

struct CpuInfo {
  std::string model_name;     ///< "AMD EPYC 9654 96-Core Processor"; empty on ARM
  std::string vendor;         ///< "GenuineIntel", "AuthenticAMD"; on ARM the implementer, "0x41"
  std::optional<int> family;  ///< x86 only
  std::optional<int> model;   ///< x86 model; on ARM the part, 0xd40
  std::vector<std::string> flags;  ///< "avx512f", "amx_bf16", "asimd"; as /proc/cpuinfo spells them
  std::optional<double>
      cores;  ///< physical cores this process may use; a cgroup quota makes fractions
  std::optional<double> clock_hertz;  ///< highest clock, the mean over those cores
  std::string clock_source;           ///< where the clock was read; empty without one
};

}  // namespace flopmeter
