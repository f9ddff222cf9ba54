// SPDX-License-Identifier: Apache-2.0
#include "links.h"

#include "sort_runs.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace flopmeter {

std::uint32_t innermost_op(const Trace& trace, const Links& links, std::uint32_t event) {
  while (event != no_event && trace.host_events[event].kind != HostKind::op)
    event = links.parent[event];
  return event;
}

namespace {

bool is_launch(const HostEvent& event) {
  return event.kind == HostKind::launch || event.kind == HostKind::driver_launch;
}

/// An object and not a function, so that sorting inlines it.
constexpr auto outer_first = [](const HostEvent& a, const HostEvent& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  if (a.start != b.start) return a.start < b.start;
  return a.duration != b.duration ? a.duration > b.duration : a.kind < b.kind;
};

std::vector<std::uint32_t> find_parents(const std::vector<HostEvent>& events) {
  std::vector<std::uint32_t> parents(events.size(), no_event);
  std::vector<std::uint32_t> open;  // operators and annotations, each started before the next
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const HostEvent& event = events[i];
    if (i > 0 && events[i - 1].thread != event.thread) open.clear();
    // In files of whole microseconds a launch may share its time with the end of its operator.
    const bool end_included = is_launch(event);
    while (!open.empty()) {
      const TraceNs end = events[open.back()].end();
      if (end_included ? end >= event.start : end > event.start) break;
      open.pop_back();
    }
    if (!open.empty()) parents[i] = open.back();
    if (!is_launch(event)) open.push_back(i);
  }
  return parents;
}

/// Host events by an id; the event that sorts first wins if several have it.
class IdIndex {
 public:
  void add(std::int64_t id, int preference, std::uint32_t event) {
    if (id != no_id) rows_.push_back({id, preference, event});
  }
  void finish() { sort_runs(rows_.begin(), rows_.end(), std::less{}); }
  [[nodiscard]] std::uint32_t find(std::int64_t id) const {
    if (id == no_id) return no_event;
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), Row{id, 0, 0});
    return row != rows_.end() && row->id == id ? row->event : no_event;
  }

 private:
  struct Row {
    std::int64_t id;
    int preference;
    std::uint32_t event;
    auto operator<=>(const Row&) const = default;
  };
  std::vector<Row> rows_;
};

/// The launch of each device event by its correlation, and the operator around the launch.
void find_launches(const Trace& trace, Links& links) {
  IdIndex launches;
  for (std::uint32_t i = 0; i < trace.host_events.size(); ++i) {
    const HostEvent& event = trace.host_events[i];
    if (event.kind == HostKind::launch) launches.add(event.id, 0, i);
    if (event.kind == HostKind::driver_launch) launches.add(event.id, 1, i);
  }
  launches.finish();
  for (std::size_t i = 0; i < trace.device_events.size(); ++i) {
    const DeviceEvent& event = trace.device_events[i];
    links.launch[i] = launches.find(event.correlation);
    if (links.launch[i] == no_event) continue;
    links.op[i] = innermost_op(trace, links, links.parent[links.launch[i]]);
    links.first_linked = links.any_launch ? std::min(links.first_linked, event.start) : event.start;
    links.any_launch = true;
  }
}

/// The operator of device events that have no launch, by its external id.
void find_ops_by_id(const Trace& trace, Links& links) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < trace.device_events.size(); ++i) {
    const DeviceEvent& event = trace.device_events[i];
    // torch 1.12 to 2.2 repeats the correlation as external id.
    if (links.op[i] == no_event && event.external_id != event.correlation) open.push_back(i);
  }
  if (open.empty()) return;
  IdIndex operators;
  for (std::uint32_t i = 0; i < trace.host_events.size(); ++i) {
    if (trace.host_events[i].kind == HostKind::op) operators.add(trace.host_events[i].id, 0, i);
  }
  operators.finish();
  for (const std::size_t i : open) links.op[i] = operators.find(trace.device_events[i].external_id);
}

}  // namespace

Links link_events(Trace& trace) {
  sort_runs(trace.host_events.begin(), trace.host_events.end(), outer_first);
  Links links;
  links.parent = find_parents(trace.host_events);
  links.launch.assign(trace.device_events.size(), no_event);
  links.op.assign(trace.device_events.size(), no_event);
  links.launched.assign(trace.host_events.size(), false);

  find_launches(trace, links);
  find_ops_by_id(trace, links);
  for (std::size_t i = 0; i < trace.device_events.size(); ++i) {
    std::uint32_t around = links.op[i] != no_event ? links.op[i] : links.launch[i];
    for (; around != no_event && !links.launched[around]; around = links.parent[around])
      links.launched[around] = true;
  }
  return links;
}

}  // namespace flopmeter
