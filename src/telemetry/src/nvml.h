// SPDX-License-Identifier: Apache-2.0
//
// Subset of NVML's interface, from nvml.h. A test compares sizes and constants with the package
// nvidia-ml-py.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/telemetry/gpu_monitor.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>

namespace flopmeter::nvml {

using Return = int;
using Device = void*;
using GpmSample = void*;

inline constexpr Return success = 0;
inline constexpr unsigned clock_sm = 1;
inline constexpr unsigned clock_memory = 2;
inline constexpr unsigned not_available = std::numeric_limits<unsigned>::max();
inline constexpr std::uint64_t not_available_long = std::numeric_limits<std::uint64_t>::max();
inline constexpr unsigned gpm_version = 1;
inline constexpr std::size_t gpm_metric_max = 477;

/// nvmlGpmMetricId_t; values are percentages.
enum class GpmMetric : unsigned {
  sm_util = 2,
  any_tensor_util = 5,
  dram_bw_util = 10,
  fp64_util = 11,
  fp32_util = 12,
  fp16_util = 13,
};

struct Utilization {
  unsigned gpu = 0;
  unsigned memory = 0;
};

struct Memory {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint64_t used = 0;
};

struct GpmSupport {
  unsigned version = gpm_version;
  unsigned is_supported = 0;
};

struct GpmMetricValue {
  unsigned metric = 0;
  Return result = success;
  double value = 0;
  const char* short_name = nullptr;
  const char* long_name = nullptr;
  const char* unit = nullptr;
};

struct GpmMetricsGet {
  unsigned version = gpm_version;
  unsigned count = 0;
  GpmSample sample1 = nullptr;
  GpmSample sample2 = nullptr;
  std::array<GpmMetricValue, gpm_metric_max> metrics;
};

}  // namespace flopmeter::nvml
