// SPDX-License-Identifier: Apache-2.0
#include "trace_diagnosis.h"

#include "trace_argument.h"

#include <algorithm>
#include <map>

namespace flopmeter {
namespace {

double seconds(TraceNs time) {
  return static_cast<double>(time) * 1e-9;
}

/// Adds the part of a window to the sums of a mean step.  `waiting` is what collectives wait for
/// other ranks.
void add_window(DeviceTime& device,
                const TimeSplit& split,
                const IdleTimes& idle,
                TraceNs waiting) {
  const auto exposed = [&](DeviceClass kind) {
    return split.exposed[static_cast<std::size_t>(kind)];
  };
  const auto cause = [&](IdleCause one) { return idle.time[static_cast<std::size_t>(one)]; };
  const TraceNs communication = exposed(DeviceClass::communication);
  const TraceNs for_others = std::min(waiting, communication);
  device.busy += seconds(exposed(DeviceClass::compute) + exposed(DeviceClass::memcpy) +
                         exposed(DeviceClass::memset));
  // The device's own latency and launches that the trace does not have stay unexplained.
  for (const CauseTime& each : std::initializer_list<CauseTime>{
           {causes::communication, seconds(communication - for_others)},
           {causes::straggler, seconds(for_others)},
           {causes::data_loading, seconds(cause(IdleCause::data_loading))},
           {causes::synchronization, seconds(cause(IdleCause::synchronization))},
           {causes::launch_overhead,
            seconds(cause(IdleCause::launch) + cause(IdleCause::launch_in_flight) +
                    cause(IdleCause::allocation))}}) {
    device.idle.push_back(each);
  }
}

/// How the device spent a mean step.
DeviceTime device_time(const DeviceReport& report) {
  DeviceTime device;
  int steps = 0;
  for (const TraceStepReport& step : report.steps) {
    if (!step.device) continue;
    add_window(device, step.split, step.idle, step.collective_wait);
    ++steps;
  }
  if (report.steps.empty()) {
    add_window(device, report.split, report.idle, report.collective_wait.value_or(0));
    steps = 1;
  }
  for (const OpProfile& profile : report.profiles) {
    for (const OpProfileRow& row : profile.rows) {
      if (row.phase == Phase::optimizer) device.optimizer += row.self.value;
    }
  }
  if (steps == 0) return device;
  device.busy /= steps;
  device.optimizer /= static_cast<double>(std::max<std::size_t>(report.profiles.size(), 1));
  for (CauseTime& each : device.idle) each.seconds /= steps;
  return device;
}

/// The figures that rules compare ranks by; which rank the others wait for is known from the trace.
std::vector<RankFigures> figures_of_ranks(const TraceReport& report) {
  std::vector<RankFigures> all;
  if (report.ranks.size() < 2) return all;
  for (const DeviceReport& rank : report.ranks) {
    const StepTotals totals = summarize({.steps = rank.records});
    if (!rank.rank || !rank.collective_wait || totals.steps == 0) continue;
    const auto steps = static_cast<double>(totals.steps);
    RankFigures figures{.rank = *rank.rank, .step_seconds = totals.seconds / steps};
    figures.communication_seconds = totals.phase(Phase::communication).value_or(0) / steps;
    if (report.straggler && report.straggler->rank == *rank.rank) figures.verdict = Verdict::late;
    all.push_back(figures);
  }
  return all;
}

Evidence evidence_of(const DeviceReport& report, std::vector<RankFigures> ranks = {}) {
  Evidence evidence;
  evidence.ranks = std::move(ranks);
  evidence.steps = report.records;
  evidence.rank = report.rank.value_or(0);
  evidence.peaks = report.peaks.value_or(PeakTable{});
  evidence.profiles = report.profiles;
  if (report.device_index) evidence.device = device_time(report);
  return evidence;
}

/// Sums the lines by cause.  The sum with a rank whose budget is empty, as its MFU exceeds 1, is
/// empty too.
void add(TimeBudget& sum, const TimeBudget& budget) {
  const bool empty = budget.lines.empty() || (sum.total > 0 && sum.lines.empty());
  sum.total += budget.total;
  if (empty) return sum.lines.clear();
  for (const BudgetLine& line : budget.lines) {
    const auto same = std::find_if(sum.lines.begin(), sum.lines.end(), [&](const BudgetLine& each) {
      return each.cause == line.cause;
    });
    if (same == sum.lines.end()) {
      sum.lines.push_back(line);
    } else {
      same->nanoseconds += line.nanoseconds;
    }
  }
}

/// The mean of `ranks` budgets; the largest line takes what integer division leaves.
void divide(TimeBudget& sum, std::int64_t ranks) {
  std::sort(sum.lines.begin(), sum.lines.end(), [](const BudgetLine& a, const BudgetLine& b) {
    return a.nanoseconds > b.nanoseconds;
  });
  if (ranks < 2) return;
  sum.total /= ranks;
  if (sum.lines.empty()) return;
  std::int64_t rest = sum.total;
  for (BudgetLine& line : sum.lines) rest -= line.nanoseconds /= ranks;
  sum.lines.front().nanoseconds += rest;
}

/// Adds a finding of the diagnosis of `rank`.  All ranks find the same straggler: the largest one
/// is kept.
void add(std::vector<Finding>& findings, Finding finding, std::optional<int> rank) {
  if (!finding.rank) finding.rank = rank;
  const auto same = std::find_if(findings.begin(), findings.end(), [&](const Finding& each) {
    return each.rule == finding.rule && each.rank == finding.rank;
  });
  if (same == findings.end()) {
    findings.push_back(std::move(finding));
  } else if (finding.share > same->share) {
    *same = std::move(finding);
  }
}

/// Keeps the largest finding of each rule, with the number of ranks that have it.
void list_rules_once(std::vector<Finding>& findings) {
  std::map<std::string, int> ranks;
  for (const Finding& finding : findings) ++ranks[finding.rule];
  std::vector<Finding> largest;
  for (Finding& finding : findings) {
    int& count = ranks[finding.rule];
    if (count == 0) continue;  // listed
    if (count > 1) finding.evidence += "; " + std::to_string(count) + " ranks have this finding";
    count = 0;
    largest.push_back(std::move(finding));
  }
  findings = std::move(largest);
}

}  // namespace

Diagnosis diagnose_trace(const TraceReport& report) {
  Diagnosis result;
  std::vector<StepTotals> totals;
  std::int64_t ranks = 0;
  const std::vector<RankFigures> figures = figures_of_ranks(report);
  for (const DeviceReport& rank : report.ranks) {
    const auto diagnosis = diagnose(evidence_of(rank, figures));
    if (!diagnosis) continue;
    add(result.budget, (*diagnosis).budget);
    totals.push_back((*diagnosis).totals);
    result.peak = (*diagnosis).peak;
    result.device = (*diagnosis).device;
    result.no_mfu = (*diagnosis).no_mfu;
    ++ranks;
    for (const Finding& finding : (*diagnosis).findings) add(result.findings, finding, rank.rank);
  }
  divide(result.budget, ranks);
  if (!totals.empty()) result.totals = StepTotals::of_ranks(totals);
  for (const DeviceReport& rank : report.ranks) add_findings(result.findings, rank.findings);
  list_rules_once(result.findings);
  return result;
}

Result<Diagnosis> diagnose_trace_file(const std::string& path) {
  auto report = read_trace_arguments({path}, {});
  if (!report) return report.error();
  auto diagnosis = diagnose(evidence_of(report->ranks.front()));
  if (!diagnosis) return Error{diagnosis.error().code, path + ": " + diagnosis.error().message};
  return diagnosis;
}

}  // namespace flopmeter
