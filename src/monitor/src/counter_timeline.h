// SPDX-License-Identifier: Apache-2.0
//
// CounterTimeline: the last readings of hardware counters, interpolated for a time interval. Steps
// and readings do not start at the same time, so the total grows linearly between two readings and
// is extrapolated after the last one.
#pragma once

#include <flopmeter/telemetry/hardware_counters.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace flopmeter {

class CounterTimeline {
 public:
  /// Readings come in the order of time; a reading that is not newer than the last is ignored.
  void add(const CounterReading& reading);
  /// FLOPs from `start_ns` to `end_ns`; empty without two readings, or if `start_ns` is before
  /// the first one that is kept.
  [[nodiscard]] std::optional<double> between(std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  [[nodiscard]] double total_at(std::int64_t ns) const;

  std::vector<CounterReading> readings_;
};

}  // namespace flopmeter
