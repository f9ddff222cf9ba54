// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <flopmeter/counting/op_profiler.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <utility>

namespace flopmeter {
namespace {

/// A profile and its time axis, as they arrive.
struct Received {
  OpProfile profile;
  StepTimeline::Lane phases{.name = "phase", .kind = "phases", .spans = {}};
  /// By thread or stream, then kind.
  std::map<std::pair<int, int>, StepTimeline::Lane> lanes;
};

OpProfile& profile_of(void* context) {
  return static_cast<Received*>(context)->profile;
}

void add_row(void* context, const FlopmeterProfileRow* row) noexcept try {
  OpProfile& profile = profile_of(context);
  profile.rows.push_back({.name = row->name,
                          .kind = static_cast<OpKind>(row->kind),
                          .calls = row->calls,
                          .self = {row->self_seconds},
                          .elements = row->elements,
                          .backward = row->backward != 0,
                          .phase = static_cast<Phase>(row->phase),
                          .recompute = row->recompute != 0,
                          .across_devices = row->across_devices != 0,
                          .shape = row->shape,
                          .flops = row->flops,
                          .bytes = row->bytes});
  profile.calls += row->calls;
  profile.busy.value += row->self_seconds;
} catch (...) {  // no memory: the row is missing, as if it had not run
}

void add_idle(void* context, const FlopmeterProfileIdle* span) noexcept try {
  profile_of(context).idle.push_back({.phase = static_cast<Phase>(span->phase),
                                      .recompute = span->recompute != 0,
                                      .stall = span->stall != 0,
                                      .count = span->count,
                                      .time = {span->seconds}});
} catch (...) {  // no memory
}

/// Kinds of lanes, from the top.
enum LaneKind { compute_lane, communication_lane, operators_lane, idle_lane };

LaneKind lane_of(const FlopmeterProfileSpan& span) {
  if (span.name == nullptr) return idle_lane;
  if (span.kind == FLOPMETER_KIND_COMPUTE) return compute_lane;
  return span.kind == FLOPMETER_KIND_COMMUNICATION ? communication_lane : operators_lane;
}

/// Extends the bar of a phase while operators of that phase follow each other.
void add_phase(std::vector<StepTimeline::Span>& bars, const FlopmeterProfileSpan& span) {
  const std::string_view phase = to_string(static_cast<Phase>(span.phase));
  if (bars.empty() || bars.back().name != phase)
    bars.push_back({.start = span.start_seconds, .name = std::string{phase}});
  StepTimeline::Span& bar = bars.back();
  bar.seconds = std::max(bar.seconds, span.start_seconds + span.seconds - bar.start);
}

void add_span(void* context, const FlopmeterProfileSpan* span) noexcept try {
  static constexpr std::array<const char*, 4> names = {
      "compute", "communication", "other operators", "no operator"};
  static constexpr std::array<const char*, 4> kinds = {
      "compute", "communication", "operators", "idle"};
  auto& received = *static_cast<Received*>(context);
  const LaneKind kind = lane_of(*span);
  StepTimeline::Lane& lane = received.lanes[{span->lane, kind}];
  if (lane.spans.empty()) {
    lane.name = names[kind];
    if (span->lane > 0) lane.name += " " + std::to_string(span->lane + 1);
    lane.kind = kinds[kind];
  }
  lane.spans.push_back({.start = span->start_seconds,
                        .seconds = span->seconds,
                        .name = kind == idle_lane ? names[idle_lane] : span->name});
  double& end = received.profile.timeline.seconds;
  end = std::max(end, span->start_seconds + span->seconds);
  if (span->lane == 0 && kind != idle_lane) add_phase(received.phases.spans, *span);
} catch (...) {  // no memory: the operator is missing
}

void set_totals(void* context,
                double wall_seconds,
                int on_device,
                int device_times,
                int64_t omitted_spans) noexcept {
  OpProfile& profile = profile_of(context);
  profile.timeline.omitted = omitted_spans;
  profile.wall = {wall_seconds};
  profile.on_device = on_device != 0;
  profile.device_times = device_times != 0;
}

}  // namespace

OpProfiler::OpProfiler(Seconds tiny, bool device_times) {
  if (require_adapter().begin_profile(tiny.value, device_times ? 1 : 0) == 0)
    throw std::logic_error("flopmeter::OpProfiler: another profile is running; stop it first");
}

OpProfiler::~OpProfiler() {
  if (running_) require_adapter().end_profile(nullptr);
}

OpProfile OpProfiler::stop() {
  return take().value_or(OpProfile{});
}

std::optional<OpProfile> OpProfiler::take() {
  Received received;
  if (!running_) return std::nullopt;
  const FlopmeterProfileReceiver receiver{.context = &received,
                                          .row = add_row,
                                          .idle = add_idle,
                                          .span = add_span,
                                          .totals = set_totals};
  running_ = require_adapter().end_profile(&receiver) == 0;
  if (running_) return std::nullopt;
  OpProfile& result = received.profile;
  if (!received.lanes.empty()) result.timeline.lanes.push_back(std::move(received.phases));
  for (auto& [key, lane] : received.lanes) result.timeline.lanes.push_back(std::move(lane));
  result.timeline.seconds = std::max(result.timeline.seconds, result.wall.value);
  std::sort(result.rows.begin(),
            result.rows.end(),
            [](const OpProfileRow& a, const OpProfileRow& b) { return a.self > b.self; });
  return std::move(result);
}

}  // namespace flopmeter
