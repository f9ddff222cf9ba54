// SPDX-License-Identifier: Apache-2.0
#include "other_work.h"

#include "intervals.h"

#include <algorithm>
#include <map>
#include <utility>

namespace flopmeter {
namespace {

/// Entries of a stream of MTIA that wait or mark a place, but compute and copy nothing.
bool is_wait(std::string_view name) {
  return name == "event_wait" || name == "event_record";
}

OtherWork summarize(const Trace& trace, const std::vector<const OtherEvent*>& events) {
  constexpr std::size_t most_names = 5;
  OtherWork work;
  work.category = trace.text(events.front()->category);
  work.process = trace.text(events.front()->process);
  work.events = static_cast<std::int64_t>(events.size());
  TraceNs first = events.front()->start;
  TraceNs last = first;
  std::vector<TimeWindow> busy;
  std::map<TextId, UnsupportedOp> names;
  for (const OtherEvent* event : events) {
    first = std::min(first, event->start);
    last = std::max(last, event->start + event->duration);
    UnsupportedOp& name = names[event->name];
    ++name.calls;
    name.time += event->duration;
    if (!is_wait(trace.text(event->name)))
      busy.push_back({event->start, event->start + event->duration});
  }
  work.span = last - first;
  work.busy = length_of_union(std::move(busy));
  for (auto& [id, name] : names) {
    name.op = trace.text(id);
    work.longest.push_back(std::move(name));
  }
  std::stable_sort(work.longest.begin(), work.longest.end(), [](const auto& a, const auto& b) {
    return a.time > b.time;
  });
  work.longest.resize(std::min(work.longest.size(), most_names));
  return work;
}

}  // namespace

std::vector<OtherWork> summarize_other_work(const Trace& trace) {
  std::map<std::pair<TextId, TextId>, std::vector<const OtherEvent*>> groups;
  for (const OtherEvent& event : trace.other_events)
    groups[{event.category, event.process}].push_back(&event);
  std::vector<OtherWork> all;
  for (const auto& [key, events] : groups) all.push_back(summarize(trace, events));
  std::stable_sort(all.begin(), all.end(), [](const OtherWork& a, const OtherWork& b) {
    return a.busy > b.busy;
  });
  return all;
}

}  // namespace flopmeter
