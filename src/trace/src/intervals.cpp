// SPDX-License-Identifier: Apache-2.0
#include "intervals.h"

#include <algorithm>

namespace flopmeter {
namespace {

/// The length of a union of intervals that come sorted by start.
class UnionLength {
 public:
  explicit UnionLength(TraceNs start) : reach_(start) {}
  void add(TimeWindow interval) {
    if (interval.end <= reach_) return;
    length_ += interval.end - std::max(interval.start, reach_);
    reach_ = interval.end;
  }
  [[nodiscard]] TraceNs length() const { return length_; }

 private:
  TraceNs reach_;
  TraceNs length_ = 0;
};

}  // namespace

TimeSplit split_time(const std::vector<DeviceEvent>& events,
                     std::span<const std::uint32_t> order,
                     TimeWindow window) {
  // Covered by a class alone, and by it together with all classes before it: the difference of two
  // neighbors of the latter is what the class exposes.
  std::vector<UnionLength> alone(device_class_count, UnionLength{window.start});
  std::vector<UnionLength> together(device_class_count, UnionLength{window.start});
  for (const std::uint32_t index : order) {
    const DeviceEvent& event = events[index];
    if (event.start >= window.end) break;
    const TimeWindow part{.start = std::max(event.start, window.start),
                          .end = std::min(event.end(), window.end)};
    if (part.end <= part.start) continue;
    const auto kind = static_cast<std::size_t>(event.kind);
    alone[kind].add(part);
    for (std::size_t i = kind; i < device_class_count; ++i) together[i].add(part);
  }
  TimeSplit split{.window = std::max<TraceNs>(window.length(), 0)};
  TraceNs covered = 0;
  for (std::size_t i = 0; i < device_class_count; ++i) {
    split.total[i] = alone[i].length();
    split.exposed[i] = together[i].length() - covered;
    covered = together[i].length();
  }
  split.idle = split.window - covered;
  return split;
}

TraceNs length_of_union(std::vector<TimeWindow> intervals) {
  if (intervals.empty()) return 0;
  std::sort(intervals.begin(), intervals.end(), [](const TimeWindow& a, const TimeWindow& b) {
    return a.start < b.start;
  });
  UnionLength covered{intervals.front().start};
  for (const TimeWindow& interval : intervals) covered.add(interval);
  return covered.length();
}

std::vector<IdleInterval> find_idle(const std::vector<DeviceEvent>& events,
                                    std::span<const std::uint32_t> order,
                                    TraceNs first) {
  std::vector<IdleInterval> idle;
  TraceNs reach = first;
  for (const std::uint32_t index : order) {
    const DeviceEvent& event = events[index];
    if (event.start > reach)
      idle.push_back({.time = {.start = reach, .end = event.start}, .ended_by = index});
    reach = std::max(reach, event.end());
  }
  return idle;
}

}  // namespace flopmeter
