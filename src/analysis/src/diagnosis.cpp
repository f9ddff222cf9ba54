// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/rule.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_points = 0.01;  // MFU that a finding must be worth
constexpr double least_part = 0.1;     // or this part of the run's MFU, where that is less

/// Findings without a size make all numbers doubtful, so they come first.
double weight(const Finding& finding) {
  return finding.mfu_points.value_or(2);
}

}  // namespace

std::string RuleContext::a_step_text(std::int64_t nanoseconds) const {
  return duration(a_step(nanoseconds)) + " of " + duration(a_step(waterfall.total)) + " a step (" +
         percent(static_cast<double>(nanoseconds) / static_cast<double>(waterfall.total)) + ")";
}

Finding finding_of(const RuleContext& context,
                   std::string_view rule,
                   std::int64_t nanoseconds,
                   double confidence) {
  Finding finding;
  finding.rule = rule;
  const Waterfall& falls = context.waterfall;
  finding.expected_mfu = falls.mfu_without(std::min(nanoseconds, falls.total - falls.ideal));
  finding.mfu_points = *finding.expected_mfu - context.waterfall.mfu;
  finding.confidence = confidence;
  return finding;
}

Result<Diagnosis> diagnose(const Evidence& evidence) {
  Diagnosis diagnosis;
  diagnosis.sums = summarize(evidence);
  const OpTimes ops = op_times(evidence);
  auto waterfall = make_waterfall(evidence, diagnosis.sums, ops);
  if (!waterfall) return waterfall.error();
  diagnosis.waterfall = *std::move(waterfall);
  const RuleContext context{evidence, diagnosis.sums, ops, diagnosis.waterfall};
  const double least = std::min(least_points, least_part * diagnosis.waterfall.mfu);
  for (const Rule* rule : rules()) {
    auto finding = rule->find(context);
    if (finding && weight(*finding) >= least) diagnosis.findings.push_back(*std::move(finding));
  }
  std::stable_sort(diagnosis.findings.begin(),
                   diagnosis.findings.end(),
                   [](const Finding& a, const Finding& b) { return weight(a) > weight(b); });
  return diagnosis;
}

std::string_view verdict(double mfu) {
  if (mfu > 0.5) return "good";
  if (mfu > 0.2) return "fair";
  return mfu > 0.1 ? "low" : "very low";
}

void write_json(JsonWriter& json, const Diagnosis& diagnosis, const std::optional<Price>& price) {
  const Waterfall& falls = diagnosis.waterfall;
  json.begin_object()
      .field("schema", "flopmeter.diagnosis/1")
      .field("mfu", falls.mfu)
      .field("verdict", verdict(falls.mfu))
      .field("mfu_of_steps", diagnosis.sums.recorded_mfu)
      .field("steps", diagnosis.sums.steps)
      .field("seconds", static_cast<double>(falls.total) / 1e9)
      .field("ideal_seconds", static_cast<double>(falls.ideal) / 1e9);
  json.key("waterfall").begin_array();
  for (const Loss& loss : falls.losses) {
    if (loss.nanoseconds == 0) continue;
    json.begin_object()
        .field("cause", to_string(loss.cause))
        .field("seconds", static_cast<double>(loss.nanoseconds) / 1e9)
        .field("nanoseconds", loss.nanoseconds)
        .field("mfu_points", loss.mfu_points)
        .end_object();
  }
  json.end_array();
  json.key("missing_signals").begin_array();
  for (const std::string& text : falls.missing) json.value(text);
  json.end_array();
  json.key("findings").begin_array();
  for (const Finding& finding : diagnosis.findings) write_json(json, finding);
  json.end_array();
  if (price) {
    const double an_hour = price->per_device_hour * price->devices;
    json.key("cost").begin_object();
    json.field("per_hour", an_hour).field("lost_per_hour", an_hour * (1 - falls.mfu));
    const double expected = diagnosis.findings.empty()
                                ? falls.mfu
                                : diagnosis.findings.front().expected_mfu.value_or(falls.mfu);
    json.field("saved_per_hour_by_first_remedy", an_hour * (1 - falls.mfu / expected));
    json.end_object();
  }
  json.end_object();
}

std::vector<Change> compare(const Waterfall& before, const Waterfall& after) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < cause_count; ++i) {
    const double a = before.losses[i].mfu_points;
    const double b = after.losses[i].mfu_points;
    if (a == 0 && b == 0) continue;
    changes.push_back({static_cast<Cause>(i), a, b, a - b});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(a.mfu_change) > std::abs(b.mfu_change);
  });
  return changes;
}

}  // namespace flopmeter
