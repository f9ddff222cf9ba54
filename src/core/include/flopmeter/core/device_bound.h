// SPDX-License-Identifier: Apache-2.0
//
// Whether an asynchronous device, or the host that feeds it, limits the steps.
#pragma once

#include <flopmeter/core/step_totals.h>

#include <string_view>

namespace flopmeter {

/// "device-bound" or "host-bound"; empty if the bounds of the idle time leave it open, or if no
/// device was timed.
inline std::string_view device_bound(const StepTotals::Device& device) {
  constexpr double little = 0.05;  // of the time
  if (device.steps == 0 || !(device.seconds > 0)) return {};
  if (device.idle_max < little * device.seconds) return "device-bound";
  return device.idle_min > little * device.seconds ? "host-bound" : "";
}

}  // namespace flopmeter
