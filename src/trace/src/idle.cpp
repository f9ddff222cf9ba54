// SPDX-License-Identifier: Apache-2.0
#include "idle.h"

#include "texts.h"

#include <algorithm>
#include <array>
#include <optional>

namespace flopmeter {
namespace {

/// The reason why a host event makes its thread wait; empty if it does not wait.
std::optional<IdleCause> waits_for(std::string_view name) {
  if (name.starts_with("enumerate(DataLoader)#")) return IdleCause::data_loading;
  static constexpr auto synchronizing = std::to_array<std::string_view>({"StreamSynchronize",
                                                                         "DeviceSynchronize",
                                                                         "EventSynchronize",
                                                                         "CtxSynchronize",
                                                                         "MemcpyDtoH",
                                                                         "aten::item",
                                                                         "_local_scalar_dense"});
  for (const std::string_view part : synchronizing) {
    if (name.find(part) != std::string_view::npos) return IdleCause::synchronization;
  }
  static constexpr auto allocating = std::to_array<std::string_view>(
      {"cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemCreate", "cuMemMap", "cuMemUnmap"});
  for (const std::string_view part : allocating) {
    if (name.starts_with(part)) return IdleCause::allocation;
  }
  return std::nullopt;
}

/// A wait of a thread.
struct Wait {
  TimeWindow time;
  IdleCause cause = IdleCause::synchronization;
};

/// The waits of each thread, earliest first, outermost only, so that they do not overlap.
class Waits {
 public:
  explicit Waits(const Trace& trace) {
    const auto causes = by_text(trace, waits_for);
    for (const HostEvent& event : trace.host_events) {
      const std::optional<IdleCause> cause = causes[event.name];
      if (!cause) continue;
      if (event.thread >= by_thread_.size()) by_thread_.resize(std::size_t{event.thread} + 1);
      std::vector<Wait>& waits = by_thread_[event.thread];
      if (!waits.empty() && event.start < waits.back().time.end) continue;
      waits.push_back({.time = {event.start, event.end()}, .cause = *cause});
    }
  }

  /// Calls `each` with the waits of a thread that overlap `window`.
  template <class Each>
  void within(std::uint32_t thread, TimeWindow window, const Each& each) const {
    if (thread >= by_thread_.size()) return;
    const std::vector<Wait>& waits = by_thread_[thread];
    auto wait = std::partition_point(
        waits.begin(), waits.end(), [&](const Wait& one) { return one.time.end <= window.start; });
    for (; wait != waits.end() && wait->time.start < window.end; ++wait) each(*wait);
  }

 private:
  std::vector<std::vector<Wait>> by_thread_;
};

TraceNs overlap(TimeWindow a, TimeWindow b) {
  return std::max<TraceNs>(std::min(a.end, b.end) - std::max(a.start, b.start), 0);
}

}  // namespace

std::string_view to_string(IdleCause cause) {
  constexpr auto names = std::to_array<std::string_view>({"data_loading",
                                                          "synchronization",
                                                          "allocation",
                                                          "launch",
                                                          "launch_in_flight",
                                                          "queued",
                                                          "unknown"});
  static_assert(names.size() == idle_cause_count);
  return names[static_cast<std::size_t>(cause)];
}

std::vector<ExplainedInterval> explain_idle(const Trace& trace,
                                            const Links& links,
                                            std::span<const IdleInterval> intervals) {
  const Waits waits{trace};
  std::vector<ExplainedInterval> explained;
  explained.reserve(intervals.size());
  for (const IdleInterval& interval : intervals) {
    ExplainedInterval result{.time = interval.time};
    if (const std::uint32_t launch = links.launch[interval.ended_by]; launch != no_event) {
      const HostEvent& call = trace.host_events[launch];
      if (call.start < interval.time.start) {
        result.cause =
            call.end() <= interval.time.start ? IdleCause::queued : IdleCause::launch_in_flight;
      } else {
        result.cause = IdleCause::launch;
        waits.within(call.thread, interval.time, [&](const Wait& wait) {
          if (wait.cause == IdleCause::data_loading) {
            result.data_loading += overlap(wait.time, interval.time);
          } else if (result.cause != IdleCause::synchronization) {
            result.cause = wait.cause;
          }
        });
      }
    }
    explained.push_back(result);
  }
  return explained;
}

IdleTimes idle_within(std::span<const ExplainedInterval> intervals,
                      TimeWindow window,
                      TraceNs idle) {
  IdleTimes times;
  TraceNs known = 0;
  const auto add = [&](IdleCause cause, TraceNs time) {
    if (time == 0) return;
    times.time[static_cast<std::size_t>(cause)] += time;
    ++times.intervals[static_cast<std::size_t>(cause)];
    known += time;
  };
  auto interval =
      std::partition_point(intervals.begin(), intervals.end(), [&](const ExplainedInterval& one) {
        return one.time.end <= window.start;
      });
  for (; interval != intervals.end() && interval->time.start < window.end; ++interval) {
    const TraceNs inside = overlap(interval->time, window);
    const TraceNs loading = std::min(interval->data_loading, inside);
    add(IdleCause::data_loading, loading);
    add(interval->cause, inside - loading);
  }
  add(IdleCause::unknown, idle - known);
  return times;
}

}  // namespace flopmeter
