// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/device_bound.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace flopmeter {
namespace {

constexpr double least_share = 0.01;  // of the time that a finding must be worth

std::string peak_name(const StepTotals& totals) {
  const auto dtype = main_dtype(totals);
  return dtype ? std::string{to_string(*dtype)} : std::string{};
}

std::string why_no_mfu(const Evidence& evidence, const StepTotals& totals) {
  if (totals.mfu()) return {};
  const auto& peaks = evidence.peaks.peaks;
  const std::string device = evidence.peaks.device.empty() ? "this device" : evidence.peaks.device;
  const auto missing = [&](const std::string& peak) {
    return "the " + peak + " of " + device +
           " is not known (set it with --peak or peak_tflops, or measure it with flopmeter peak)";
  };
  if (std::none_of(peaks.begin(), peaks.end(), [](const auto& peak) { return peak.has_value(); }))
    return missing("peak");
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (totals.hardware_flops_by_dtype[i] != 0 && !peaks[i])
      return missing(std::string{to_string(static_cast<Dtype>(i))} + " peak");
  }
  for (auto step = evidence.steps.rbegin(); step != evidence.steps.rend(); ++step) {
    if (step->tag == StepTag::train && !step->flops_note.empty())
      return "the FLOPs are not known (" + std::string{step->flops_note} + ")";
  }
  return "the FLOPs are not known";
}

/// Fills in the effect of a fix from the time that remains.
void fill_what_if(Finding& finding, const StepTotals& totals, double total, double saved) {
  const double useful = totals.mfu().value_or(0) * total * finding.useful_factor;
  const double least = std::min(useful, total);  // that is left, apart from rounding
  saved = std::clamp(saved, 0.0, total - least);
  finding.seconds = saved;
  finding.share = saved / total;
  finding.speedup = total > saved ? std::optional{total / (total - saved)} : std::nullopt;
  if (totals.mfu() && total > saved) finding.mfu_then = useful / std::max(total - saved, least);
}

/// All fixes: fixes of different causes add up, fixes of the same cause multiply.
std::optional<Finding> all_together(const Diagnosis& diagnosis) {
  std::map<std::string_view, double> left;
  for (const BudgetLine& line : diagnosis.budget.lines)
    left[line.cause.id] = static_cast<double>(line.nanoseconds) / 1e9;
  const std::map<std::string_view, double> before = left;
  Finding all;
  all.rule = "all";
  all.peak = diagnosis.peak;
  int fixes = 0;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.savings.empty()) continue;
    ++fixes;
    all.useful_factor *= finding.useful_factor;
    if (finding.peak != diagnosis.peak) all.peak = finding.peak;
    for (const Saving& saving : finding.savings) {
      const double of = before.at(saving.cause);
      left[saving.cause] *= 1 - std::min(1.0, saving.seconds / of);
    }
  }
  if (fixes < 2) return std::nullopt;
  double saved = 0;
  for (const auto& [cause, seconds] : before) saved += seconds - left[cause];
  fill_what_if(all, diagnosis.totals, static_cast<double>(diagnosis.budget.total) / 1e9, saved);
  return all;
}

/// ", below the results published for 7–8B dense, …: 38–54 %, 14 results"; "" without results.
std::string published_text(const Diagnosis& diagnosis) {
  const auto mfu = diagnosis.mfu();
  if (!mfu || !diagnosis.published || diagnosis.published->results.empty()) return "";
  const PublishedComparison& published = *diagnosis.published;
  const std::string_view place = *mfu < *published.low()    ? "below"
                                 : *mfu > *published.high() ? "above"
                                                            : "within";
  return ", " + std::string{place} + " the results " + published.text;
}

/// "; device-bound: the device is idle 0.0 % to 1.2 % of the time"; empty if it is unknown.
std::string bound_text(const StepTotals::Device& device) {
  const std::string_view bound = device_bound(device);
  if (bound.empty()) return {};
  return "; " + std::string{bound} + ": the device is idle " +
         percent(device.steady_idle_min / device.steady_seconds) + " to " +
         percent(device.steady_idle_max / device.steady_seconds) + " of the time";
}

}  // namespace

std::int64_t RuleContext::all_steps(double seconds) const {
  return std::llround(std::clamp(seconds * static_cast<double>(totals.steps), 0.0, 9e9) * 1e9);
}

std::string RuleContext::per_step_text(std::int64_t nanoseconds) const {
  return duration(per_step(nanoseconds)) + " of " + duration(per_step(budget.total)) +
         " per step (" + percent(share(nanoseconds)) + ")";
}

double RuleContext::tokens_at_once() const {
  return totals.micro_batches > 0
             ? static_cast<double>(totals.tokens.amount) / totals.replicas / totals.token_share() /
                   static_cast<double>(totals.micro_batches)
             : 0;
}

std::int64_t RuleContext::samples_at_once() const {
  const std::int64_t micro_batches = std::max<std::int64_t>(totals.micro_batches, 1);
  return std::max<std::int64_t>(totals.samples.amount / totals.replicas / micro_batches, 1);
}

WhatIf save(const RuleContext& context, const Cause& cause, std::int64_t nanoseconds) {
  WhatIf what_if;
  const std::int64_t own =
      std::clamp<std::int64_t>(nanoseconds, 0, context.budget.nanoseconds(cause));
  if (own > 0) what_if.saved.push_back({cause, own});
  std::int64_t others = 0;
  for (const BudgetLine& line : context.budget.lines) {
    if (line.cause != cause && line.cause != causes::useful) others += line.nanoseconds;
  }
  const double factor =
      others > 0
          ? std::clamp(
                static_cast<double>(nanoseconds - own) / static_cast<double>(others), 0.0, 1.0)
          : 0;
  for (const BudgetLine& line : context.budget.lines) {
    if (line.cause == cause || line.cause == causes::useful || factor == 0) continue;
    what_if.saved.push_back(
        {line.cause, std::llround(static_cast<double>(line.nanoseconds) * factor)});
  }
  return what_if;
}

Finding finding_of(const RuleContext& context,
                   std::string_view rule,
                   const WhatIf& what_if,
                   double confidence) {
  Finding finding;
  finding.rule = rule;
  finding.confidence = confidence;
  finding.useful_factor = what_if.useful_factor;
  finding.peak = what_if.dtype ? std::string{to_string(*what_if.dtype)} : peak_name(context.totals);
  double saved = 0;
  for (const BudgetLine& line : what_if.saved) {
    const double seconds =
        static_cast<double>(std::min(line.nanoseconds, context.budget.nanoseconds(line.cause))) /
        1e9;
    if (!(seconds > 0)) continue;
    finding.savings.push_back({std::string{line.cause.id}, seconds});
    saved += seconds;
  }
  fill_what_if(finding, context.totals, static_cast<double>(context.budget.total) / 1e9, saved);
  return finding;
}

Finding out_of_step_finding(const RuleContext& context,
                            std::string_view rule,
                            double seconds,
                            double confidence) {
  Finding finding;
  finding.rule = rule;
  finding.confidence = confidence;
  finding.peak = peak_name(context.totals);
  double total = context.totals.seconds;
  for (const auto& [tag, tagged] : context.totals.other_tags) total += tagged.seconds;
  finding.seconds = seconds;
  finding.share = seconds / total;
  finding.speedup = total / (total - seconds);
  finding.mfu_then = context.totals.mfu();
  return finding;
}

Result<Diagnosis> diagnose(const Evidence& evidence) {
  Diagnosis diagnosis;
  diagnosis.totals = summarize(evidence);
  if (diagnosis.totals.steps == 0)
    return Error{ErrorCode::not_found, "the run has no train step yet"};
  const OpTimes ops = op_times(evidence);
  diagnosis.budget = make_budget(evidence, ops);
  diagnosis.peak = peak_name(diagnosis.totals);
  diagnosis.device = evidence.peaks.device;
  diagnosis.no_mfu = why_no_mfu(evidence, diagnosis.totals);
  if (evidence.similar) {
    PublishedQuery query = *evidence.similar;
    query.device = evidence.peaks.device;
    query.dtype = main_dtype(diagnosis.totals);
    diagnosis.published = compare_published(query);
  }
  const RuleContext context{evidence, diagnosis.totals, ops, diagnosis.budget};
  for (const Rule* rule : rules()) {
    auto finding = rule->find(context);
    if (finding && finding->share.value_or(1) >= least_share)
      diagnosis.findings.push_back(*std::move(finding));
  }
  std::stable_sort(
      diagnosis.findings.begin(), diagnosis.findings.end(), [](const Finding& a, const Finding& b) {
        return a.share.value_or(0) > b.share.value_or(0);
      });
  diagnosis.together = all_together(diagnosis);
  return diagnosis;
}

std::string_view cause_of(const Finding& finding) {
  const auto& savings = finding.savings;
  const auto own = std::find_if(savings.begin(), savings.end(), [&](const Saving& each) {
    return each.cause == finding.rule;
  });
  if (own != savings.end()) return own->cause;
  const auto largest =
      std::max_element(savings.begin(), savings.end(), [](const Saving& a, const Saving& b) {
        return a.seconds < b.seconds;
      });
  return largest == savings.end() ? std::string_view{} : largest->cause;
}

const BudgetLine* largest_loss(const TimeBudget& budget) {
  for (const BudgetLine& line : budget.lines) {
    if (line.cause != causes::useful) return &line;
  }
  return nullptr;
}

std::string verdict(const Diagnosis& diagnosis) {
  const auto mfu = diagnosis.mfu();
  std::string text = mfu ? "MFU " + percent(*mfu) +
                               (diagnosis.peak.empty() ? "" : " of the " + diagnosis.peak + " peak")
                         : "MFU is not known: " + diagnosis.no_mfu;
  text += published_text(diagnosis);
  if (const BudgetLine* line = largest_loss(diagnosis.budget)) {
    text += "; the largest loss is " + std::string{line->cause.text} + ": " +
            percent(diagnosis.budget.share(line->cause)) + " of the time";
  }
  return text + bound_text(diagnosis.totals.device);
}

void write_json(JsonWriter& json, const TimeBudget& budget) {
  json.begin_array();
  for (const BudgetLine& line : budget.lines) {
    json.begin_object()
        .field("cause", line.cause.id)
        .field("seconds", static_cast<double>(line.nanoseconds) / 1e9)
        .field("share", budget.share(line.cause))
        .end_object();
  }
  json.end_array();
}

void write_json(JsonWriter& json,
                const Diagnosis& diagnosis,
                const std::optional<DeviceCost>& cost) {
  json.begin_object()
      .field("schema", "flopmeter.diagnosis/2")
      .field("mfu", diagnosis.mfu())
      .field("goodput", diagnosis.totals.goodput())
      .field("verdict", verdict(diagnosis))
      .field("steps", diagnosis.totals.steps)
      .field("seconds", static_cast<double>(diagnosis.budget.total) / 1e9);
  json.key("published");
  diagnosis.published ? write_json(json, *diagnosis.published) : static_cast<void>(json.null());
  json.key("missing_signals").begin_array();
  for (const std::string& text : diagnosis.budget.missing_signals) json.value(text);
  json.end_array();
  json.key("budget");
  write_json(json, diagnosis.budget);
  json.key("findings").begin_array();
  for (const Finding& finding : diagnosis.findings) write_json(json, finding);
  json.end_array();
  if (cost) {
    const double per_hour = cost->per_device_hour * cost->devices;
    const auto part = [&](std::optional<double> share) {
      return share ? std::optional{per_hour * *share} : std::nullopt;
    };
    const auto mfu = diagnosis.mfu();
    const auto first = std::find_if(diagnosis.findings.begin(),
                                    diagnosis.findings.end(),
                                    [](const Finding& each) { return each.share.has_value(); });
    json.key("cost")
        .begin_object()
        .field("per_hour", per_hour)
        .field("lost_per_hour", part(mfu && *mfu <= 1 ? std::optional{1 - *mfu} : std::nullopt))
        .field("saved_per_hour_by_first_recommendation",
               part(first == diagnosis.findings.end() ? std::nullopt : first->share))
        .end_object();
  }
  json.end_object();
}

std::vector<Change> compare(const Diagnosis& before, const Diagnosis& after) {
  std::vector<Change> changes;
  const auto per_step = [](const Diagnosis& diagnosis, const Cause& cause) {
    return diagnosis.budget.seconds(cause) / static_cast<double>(diagnosis.totals.steps);
  };
  const auto add = [&](const TimeBudget& budget) {
    for (const BudgetLine& line : budget.lines) {
      const bool known = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
        return change.cause == line.cause;
      });
      if (!known)
        changes.push_back({line.cause, per_step(before, line.cause), per_step(after, line.cause)});
    }
  };
  add(before.budget);
  add(after.budget);
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  });
  return changes;
}

}  // namespace flopmeter
