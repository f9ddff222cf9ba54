// SPDX-License-Identifier: Apache-2.0
#include "report_diagnosis.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <map>

namespace flopmeter {
namespace {

constexpr std::size_t most_ops = 15;
constexpr std::size_t most_matmuls = 100;

struct OpTotal {
  std::uint64_t calls = 0;
  std::uint64_t flops = 0;
  double seconds = 0;
};

void write_ops(JsonWriter& json, const OpProfile& profile) {
  std::map<std::string, OpTotal> by_name;
  for (const OpProfileRow& row : profile.rows) {
    OpTotal& total = by_name[row.name];
    total.calls += row.calls;
    total.flops += row.flops;
    total.seconds += row.self.value;
  }
  std::vector<std::pair<std::string, OpTotal>> ops{by_name.begin(), by_name.end()};
  std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  if (ops.size() > most_ops) ops.resize(most_ops);
  json.key("ops").begin_array();
  for (const auto& [name, total] : ops) {
    json.begin_object()
        .field("name", name)
        .field("calls", total.calls)
        .field("flops", total.flops)
        .field("seconds", total.seconds)
        .field("share",
               profile.busy.value > 0 ? std::optional{total.seconds / profile.busy.value}
                                      : std::nullopt)
        .end_object();
  }
  json.end_array();
}

/// Rows come longest first, so the first ones matter most.
void write_matmuls(JsonWriter& json, const OpProfile& profile) {
  json.key("matmuls").begin_array();
  std::size_t written = 0;
  for (const OpProfileRow& row : profile.rows) {
    if (row.flops == 0 || row.bytes == 0 || !(row.self.value > 0)) continue;
    if (++written > most_matmuls) break;
    json.begin_object()
        .field("name", row.name)
        .field("shape", row.shape)
        .field("backward", row.backward)
        .field("calls", row.calls)
        .field("flops", row.flops)
        .field("bytes", row.bytes)
        .field("seconds", row.self)
        .end_object();
  }
  json.end_array();
}

std::optional<StepTimeline> profiled_step(const std::vector<OpProfile>& profiles) {
  if (profiles.empty()) return std::nullopt;
  const OpProfile& latest = profiles.back();
  StepTimeline timeline = latest.timeline;
  timeline.step = "Step " + grouped(latest.step) + ", profiled";
  if (latest.on_device && !latest.device_times) timeline.step += ", by the time of the host";
  return timeline;
}

}  // namespace

void write_diagnosis(JsonWriter& json, const Result<Diagnosis>& diagnosis) {
  json.field("diagnosis_missing",
             diagnosis ? std::nullopt : std::optional{diagnosis.error().message});
  if (!diagnosis) {
    json.key("published").null().key("budget").null().key("findings").null();
    return;
  }
  const TimeBudget& budget = (*diagnosis).budget;
  json.field("verdict", verdict(*diagnosis)).field("peak", (*diagnosis).peak);
  json.key("published");
  (*diagnosis).published ? write_json(json, *(*diagnosis).published)
                         : static_cast<void>(json.null());
  json.key("budget");
  write_json(json, budget);
  json.key("cause_texts").begin_object();
  for (const BudgetLine& line : budget.lines) json.field(line.cause.id, line.cause.text);
  json.end_object().key("missing_signals").begin_array();
  for (const std::string& signal : budget.missing_signals) json.value(signal);
  json.end_array().key("findings").begin_array();
  for (const Finding& finding : (*diagnosis).findings) write_json(json, finding);
  json.end_array().key("what_ifs").begin_array();
  for (const Finding& finding : (*diagnosis).findings) {
    json.begin_object()
        .field("rule", finding.rule)
        .field("cause", cause_of(finding))
        .field("peak", finding.peak)
        .field("useful_factor", finding.useful_factor)
        .key("savings")
        .begin_object();
    for (const Saving& saving : finding.savings) json.field(saving.cause, saving.seconds);
    json.end_object().end_object();
  }
  json.end_array();
}

void write_op_profile(JsonWriter& json, const std::vector<OpProfile>& profiles, bool device_times) {
  json.key("profile");
  if (profiles.empty()) {
    json.null();
    return;
  }
  const OpProfile& latest = profiles.back();
  const bool host_times = latest.on_device && !latest.device_times && !device_times;
  json.begin_object().field("step", latest.step).field("on_device", host_times);
  write_ops(json, latest);
  write_matmuls(json, host_times ? OpProfile{} : latest);
  json.end_object();
}

void write_step_timeline(JsonWriter& json,
                         const std::optional<StepTimeline>& recorded,
                         const std::vector<OpProfile>& profiles) {
  const auto timeline = recorded ? recorded : profiled_step(profiles);
  json.key("step_timeline");
  timeline && !timeline->lanes.empty() ? write_json(json, *timeline) : void(json.null());
}

}  // namespace flopmeter
