// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/trace/trace_report.h>

#include <cstdint>
#include <vector>

namespace flopmeter {

/// The step of median length, or all of the trace if it has no steps.  `events` are those of the
/// report's device.
StepTimeline make_timeline(const Trace& trace,
                           const std::vector<std::uint32_t>& events,
                           const DeviceReport& report);

}  // namespace flopmeter
