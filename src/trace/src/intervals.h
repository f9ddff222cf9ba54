// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a device went.  Kernels of several streams overlap; every nanosecond of a window
// belongs to the first class of this order that runs in it: compute, communication, memcpy, memset,
// and idle if none does.
#pragma once

#include <flopmeter/trace/trace.h>

#include <array>
#include <span>
#include <vector>

namespace flopmeter {

struct TimeWindow {
  TraceNs start = 0;
  TraceNs end = 0;
  [[nodiscard]] TraceNs length() const { return end - start; }
};

/// `exposed` and `idle` sum to the window.
struct TimeSplit {
  TraceNs window = 0;
  std::array<TraceNs, device_class_count> total{};    ///< by DeviceClass, overlapped or not
  std::array<TraceNs, device_class_count> exposed{};  ///< by DeviceClass, not covered by a class before it
  TraceNs idle = 0;
};

/// A time without any device work, and the event that ends it.
struct IdleGap {
  TimeWindow time;
  std::uint32_t ended_by = 0;  ///< index of a device event
};

/// The device events `order` (indexes, sorted by start) within `window`.
TimeSplit split_time(const std::vector<DeviceEvent>& events,
                     std::span<const std::uint32_t> order,
                     TimeWindow window);

/// Gaps between the events, none before the first or behind the last.
std::vector<IdleGap> find_gaps(const std::vector<DeviceEvent>& events,
                               std::span<const std::uint32_t> order);

}  // namespace flopmeter
