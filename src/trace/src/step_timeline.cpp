// SPDX-License-Identifier: Apache-2.0
#include "step_timeline.h"

#include <algorithm>
#include <map>

namespace flopmeter {
namespace {

constexpr std::size_t most_spans = 3000;  ///< on the device, and on the host
constexpr std::size_t most_threads = 3;
constexpr std::size_t deepest = 4;  ///< calls inside calls

struct Piece {
  TraceNs start = 0;
  TraceNs end = 0;
  TextId name = no_text;
  std::uint32_t group = 0;  ///< class of device work, or thread
};

class TimelineBuilder {
 public:
  TimelineBuilder(const Trace& trace, TimeWindow window) : trace_(trace), window_(window) {}

  void add(
      std::vector<Piece>& pieces, TraceNs start, TraceNs end, TextId name, std::uint32_t group) {
    const TraceNs from = std::max(start, window_.start);
    const TraceNs to = std::min(end, window_.end);
    if (from < to) pieces.push_back({from, to, name, group});
  }

  /// Keeps the longest, in order of time; outer calls before the calls inside them.
  void keep_longest(std::vector<Piece>& pieces) {
    if (pieces.size() > most_spans) {
      std::nth_element(
          pieces.begin(),
          pieces.begin() + most_spans,
          pieces.end(),
          [](const Piece& a, const Piece& b) { return a.end - a.start > b.end - b.start; });
      timeline.omitted += static_cast<std::int64_t>(pieces.size() - most_spans);
      pieces.resize(most_spans);
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
  }

  /// Distributes the spans of a group over as many lanes as overlap.
  void add_lanes(const std::vector<Piece>& pieces,
                 std::uint32_t group,
                 const std::string& name,
                 std::string_view kind,
                 std::size_t most_lanes) {
    std::vector<StepTimeline::Lane> lanes;
    std::vector<TraceNs> ends;
    for (const Piece& piece : pieces) {
      if (piece.group != group) continue;
      std::size_t lane = 0;
      while (lane < ends.size() && ends[lane] > piece.start) ++lane;
      if (lane == most_lanes) {
        ++timeline.omitted;
        continue;
      }
      if (lane == lanes.size()) {
        lanes.push_back({.name = lane == 0 ? name : "", .kind = std::string{kind}, .spans = {}});
        ends.push_back(0);
      }
      ends[lane] = piece.end;
      lanes[lane].spans.push_back({.start = static_cast<double>(piece.start - window_.start) * 1e-9,
                                   .seconds = static_cast<double>(piece.end - piece.start) * 1e-9,
                                   .name = std::string{trace_.text(piece.name)}});
    }
    std::move(lanes.begin(), lanes.end(), std::back_inserter(timeline.lanes));
  }

  StepTimeline timeline;

 private:
  const Trace& trace_;
  TimeWindow window_;
};

TimeWindow hull(const std::optional<TimeWindow>& a, const TimeWindow& b) {
  if (!a) return b;
  return {std::min(a->start, b.start), std::max(a->end, b.end)};
}

/// Calls of the threads that are busiest in the window.
void add_host(TimelineBuilder& builder, const Trace& trace) {
  std::vector<Piece> calls;
  for (const HostEvent& event : trace.host_events) {
    if (event.kind == HostKind::op || event.kind == HostKind::annotation)
      builder.add(calls, event.start, event.end(), event.name, event.thread);
  }
  std::map<std::uint32_t, std::int64_t> count;
  for (const Piece& call : calls) ++count[call.group];
  std::vector<std::pair<std::int64_t, std::uint32_t>> threads;
  for (const auto& [thread, number] : count) threads.emplace_back(number, thread);
  std::sort(threads.rbegin(), threads.rend());
  if (threads.size() > most_threads) threads.resize(most_threads);
  builder.keep_longest(calls);
  for (std::size_t i = 0; i < threads.size(); ++i)
    builder.add_lanes(calls, threads[i].second, "thread " + std::to_string(i + 1), "host", deepest);
}

}  // namespace

StepTimeline make_timeline(const Trace& trace,
                           const std::vector<std::uint32_t>& events,
                           const DeviceReport& report) {
  std::vector<const TraceStepReport*> steps;
  for (const TraceStepReport& step : report.steps) {
    if (step.device || events.empty()) steps.push_back(&step);
  }
  const auto length = [](const TraceStepReport* step) {
    return step->device ? step->device->length() : step->host.length();
  };
  TimeWindow window = report.span;
  std::string name = "all of the trace";
  if (!steps.empty()) {
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end(), [&](const auto* a, const auto* b) {
      return length(a) < length(b);
    });
    window = hull((*middle)->device, (*middle)->host);
    name = (*middle)->name + ", the step of median length";
  } else if (events.empty()) {
    for (const HostEvent& event : trace.host_events)
      window = window.length() > 0 ? hull(window, {event.start, event.end()})
                                   : TimeWindow{event.start, event.end()};
  }
  TimelineBuilder builder{trace, window};
  builder.timeline.step = std::move(name);
  builder.timeline.seconds = static_cast<double>(window.length()) * 1e-9;
  std::vector<Piece> work;
  for (const std::uint32_t i : events) {
    const DeviceEvent& event = trace.device_events[i];
    builder.add(work, event.start, event.end(), event.name, static_cast<std::uint32_t>(event.kind));
  }
  builder.keep_longest(work);
  constexpr std::array<std::string_view, device_class_count> kinds = {
      "compute", "communication", "memcpy", "memset"};
  for (std::uint32_t kind = 0; kind < kinds.size(); ++kind)
    builder.add_lanes(work, kind, std::string{kinds[kind]}, kinds[kind], 8);
  add_host(builder, trace);
  return std::move(builder.timeline);
}

}  // namespace flopmeter
