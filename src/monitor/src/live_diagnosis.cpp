// SPDX-License-Identifier: Apache-2.0
#include "live_diagnosis.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::size_t most_steps = 300;
constexpr std::size_t least_steps = 20;
constexpr std::size_t most_profiles = 4;
constexpr std::int64_t warming_up = 3;  // first steps of a process
constexpr std::int64_t evaluation_interval_ns = 10'000'000'000;

}  // namespace

void LiveDiagnosis::add(const StepRecord& record) {
  totals_.add(record);
  steps_.push_back(record);
  if (steps_.size() > most_steps) steps_.pop_front();
}

void LiveDiagnosis::add(OpProfile profile) {
  profile.timeline = {};  // only reports show it
  profiles_.push_back(std::move(profile));
  if (profiles_.size() > most_profiles) profiles_.pop_front();
}

std::vector<Finding> LiveDiagnosis::findings() const {
  return find({steps_.begin(), steps_.end()}, totals_);
}

std::vector<Finding> LiveDiagnosis::newest_findings() const {
  std::vector<StepRecord> steps;
  std::copy_if(
      steps_.begin(), steps_.end(), std::back_inserter(steps), [](const StepRecord& record) {
        return record.process_step >= warming_up;
      });
  return steps.size() < least_steps ? std::vector<Finding>{} : find(std::move(steps), std::nullopt);
}

std::vector<Finding> LiveDiagnosis::find(std::vector<StepRecord> steps,
                                         std::optional<StepTotals> totals) const {
  Evidence evidence;
  evidence.steps = std::move(steps);
  evidence.profiles.assign(profiles_.begin(), profiles_.end());
  evidence.totals = std::move(totals);
  evidence.peaks = peaks_;
  evidence.processors = static_cast<int>(std::thread::hardware_concurrency());
  auto diagnosis = diagnose(evidence);
  return diagnosis ? std::move((*diagnosis).findings) : std::vector<Finding>{};
}

std::optional<std::vector<Finding>> LiveDiagnosis::evaluate(std::int64_t now_ns) {
  if (evaluated_ns_ == 0) evaluated_ns_ = now_ns;
  if (now_ns - evaluated_ns_ < evaluation_interval_ns) return std::nullopt;
  evaluated_ns_ = now_ns;
  auto found = newest_findings();
  std::vector<std::string> rules;
  rules.reserve(found.size());
  for (const Finding& finding : found) rules.push_back(finding.rule);
  std::sort(rules.begin(), rules.end());
  const bool stands = rules == seen_;
  seen_ = rules;
  if (!stands || rules == reported_) return std::nullopt;
  reported_ = std::move(rules);
  return found;
}

}  // namespace flopmeter
