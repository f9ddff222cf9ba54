// SPDX-License-Identifier: Apache-2.0
//
// Unions of device work: the split of a window's time, and its idle intervals.
#pragma once

#include <flopmeter/trace/trace_report.h>

#include <span>
#include <vector>

namespace flopmeter {

/// An interval without device work, and the event that ends it.
struct IdleInterval {
  TimeWindow time;
  std::uint32_t ended_by = 0;  ///< index of a device event
};

/// The device events `order` (indexes, sorted by start) within `window`.
TimeSplit split_time(const std::vector<DeviceEvent>& events,
                     std::span<const std::uint32_t> order,
                     TimeWindow window);

/// The time that at least one of the intervals covers.
TraceNs length_of_union(std::vector<TimeWindow> intervals);

/// Idle intervals from `first` to the last event.
std::vector<IdleInterval> find_idle(const std::vector<DeviceEvent>& events,
                                    std::span<const std::uint32_t> order,
                                    TraceNs first);

}  // namespace flopmeter
