// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <algorithm>

namespace flopmeter {

std::vector<TraceStep> find_steps(const Trace& trace) {
  std::vector<TraceStep> steps;
  for (const HostEvent& event : trace.host_events) {
    if (event.kind != HostKind::annotation) continue;
    const std::string_view name = trace.text(event.name);
    if (!name.starts_with("ProfilerStep#")) continue;
    steps.push_back({.name = std::string{name}, .host = {event.start, event.end()}});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const TraceStep& a, const TraceStep& b) {
    return a.host.start < b.host.start;
  });
  for (std::size_t i = 1; i < steps.size(); ++i)
    steps[i].overlapped = steps[i].host.start < steps[i - 1].host.end;
  return steps;
}

std::uint32_t step_at(std::span<const TraceStep> steps, TraceNs time) {
  auto after =
      std::upper_bound(steps.begin(), steps.end(), time, [](TraceNs moment, const TraceStep& step) {
        return moment < step.host.start;
      });
  // Steps are searched in their order, so the previous result is nearly always right.
  for (int back = 0; back < 8 && after != steps.begin(); ++back) {
    --after;
    if (time < after->host.end) return static_cast<std::uint32_t>(after - steps.begin());
  }
  return no_step;
}

void find_device_steps(const Trace& trace,
                       const Links& links,
                       std::span<const std::uint32_t> device_events,
                       std::span<TraceStep> steps) {
  if (steps.empty()) return;
  constexpr TraceNs never = std::numeric_limits<TraceNs>::min();
  std::vector<TraceNs> last_end(steps.size(), never);
  TraceNs boundary = steps.front().host.start;
  for (const std::uint32_t index : device_events) {
    const DeviceEvent& event = trace.device_events[index];
    if (links.is_carried_over(trace, index)) boundary = std::max(boundary, event.end());
    if (links.launch[index] == no_event) continue;
    const std::uint32_t step = step_at(steps, trace.host_events[links.launch[index]].start);
    if (step != no_step) last_end[step] = std::max(last_end[step], event.end());
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (last_end[i] == never) continue;
    // A clock that goes back gives no interval, never a negative one.
    if (last_end[i] > boundary) steps[i].device = TimeWindow{boundary, last_end[i]};
    boundary = std::max(boundary, last_end[i]);
  }
}

}  // namespace flopmeter
