// SPDX-License-Identifier: Apache-2.0
#include "counter_timeline.h"

#include <algorithm>

namespace flopmeter {
namespace {

constexpr std::size_t most_readings = 8192;  // some minutes; then the older half is dropped

}  // namespace

void CounterTimeline::add(const CounterReading& reading) {
  if (!readings_.empty() && reading.ns <= readings_.back().ns) return;
  if (readings_.size() == most_readings)
    readings_.erase(readings_.begin(), readings_.begin() + most_readings / 2);
  readings_.push_back(reading);
}

double CounterTimeline::total_at(std::int64_t ns) const {
  auto after = std::lower_bound(
      readings_.begin() + 1, readings_.end(), ns, [](const CounterReading& r, std::int64_t at) {
        return r.ns < at;
      });
  if (after == readings_.end()) --after;
  const CounterReading& a = *(after - 1);
  const CounterReading& b = *after;
  const double share = static_cast<double>(ns - a.ns) / static_cast<double>(b.ns - a.ns);
  return a.flops + share * (b.flops - a.flops);
}

std::optional<double> CounterTimeline::between(std::int64_t start_ns, std::int64_t end_ns) const {
  if (readings_.size() < 2 || start_ns < readings_.front().ns) return std::nullopt;
  return total_at(end_ns) - total_at(start_ns);
}

}  // namespace flopmeter
