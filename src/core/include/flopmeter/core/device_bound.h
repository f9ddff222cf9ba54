// SPDX-License-Identifier: Apache-2.0
//
// Whether an asynchronous device or its host limits the steps.
#pragma once

#include <flopmeter/core/step_totals.h>

#include <string_view>

namespace flopmeter {

/// "device-bound" or "host-bound"; empty if the bounds of the idle time leave it open, or if no
/// device was timed.  The first step of a process, which sets up the device, does not count.
inline std::string_view device_bound(const StepTotals::Device& device) {
  constexpr double little = 0.05;  // of the time
  if (!(device.steady_seconds > 0)) return {};
  if (device.steady_idle_max < little * device.steady_seconds) return "device-bound";
  return device.steady_idle_min > little * device.steady_seconds ? "host-bound" : "";
}

}  // namespace flopmeter
