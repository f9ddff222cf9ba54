// SPDX-License-Identifier: Apache-2.0
//
// Findings that only a trace can prove, because it shows kernels, launches, and copies one by one.
#pragma once

#include "idle.h"
#include "links.h"
#include "op_flops.h"
#include "work.h"

#include <flopmeter/trace/trace_report.h>

#include <span>

namespace flopmeter {

/// Everything that the findings of one device are based on.
struct TraceEvidence {
  const Trace& trace;
  const Links& links;
  const OpFlops& flops;
  std::span<const Work> work;
  std::span<const std::uint32_t> events;  ///< of the device, sorted by start
  const DeviceReport& report;

  [[nodiscard]] const DeviceEvent& event(std::uint32_t index) const {
    return trace.device_events[index];
  }
  /// Part of the span of device work.
  [[nodiscard]] double share(TraceNs time) const {
    return report.split.window > 0
               ? static_cast<double>(time) / static_cast<double>(report.split.window)
               : 0;
  }
};

/// The largest first.
std::vector<Finding> find_in_trace(const TraceEvidence& evidence);

}  // namespace flopmeter
