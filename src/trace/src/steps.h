// SPDX-License-Identifier: Apache-2.0
//
// The steps of a trace.  A host that does not synchronize runs ahead of its device, so the host's
// step is not the device's: a device step lasts from the last work of the steps before it to the
// last work that it launched itself.
#pragma once

#include "intervals.h"
#include "links.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace flopmeter {

inline constexpr std::uint32_t no_step = no_text;

struct TraceStep {
  std::string name;
  TimeWindow host;
  std::optional<TimeWindow> device;  ///< empty if the step launched nothing on the device
  bool overlapped = false;           ///< the host's interval overlaps that of the step before
};

/// The `ProfilerStep#N` annotations, earliest first.
std::vector<TraceStep> find_steps(const Trace& trace);

/// The step whose interval on the host holds `time`; of several the one that started last.
std::uint32_t step_at(std::span<const TraceStep> steps, TraceNs time);

/// Fills in the device's interval of each step from the work of one device (indexes of its events).
void find_device_steps(const Trace& trace,
                       const Links& links,
                       std::span<const std::uint32_t> device_events,
                       std::span<TraceStep> steps);

}  // namespace flopmeter
