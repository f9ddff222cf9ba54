// SPDX-License-Identifier: Apache-2.0
#include "finding_marks.h"

#include <flopmeter/analysis/diagnosis.h>

#include <algorithm>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::int64_t evaluations_per_window = 64;
constexpr std::size_t widest_window = 512;
constexpr double least_share = 0.03;  ///< of the time; less is not worth a mark

}  // namespace

FindingMarks::FindingMarks(Evidence about, std::size_t window)
    : evidence_(std::move(about)), window_(window) {
  evidence_.steps.clear();
  evidence_.totals.reset();
  evidence_.ranks.clear();
}

void FindingMarks::add(const StepRecord& record) {
  evidence_.steps.push_back(record);
  if (evidence_.steps.size() >= window_) evaluate();
}

void FindingMarks::settle() {
  if (evidence_.steps.size() >= window_ / 4) evaluate();
  // Assigning {} would keep the memory.
  evidence_.steps = std::vector<StepRecord>{};
  evidence_.profiles = std::vector<OpProfile>{};
  profiles_ = std::vector<OpProfile>{};
}

void FindingMarks::evaluate() {
  ++evaluations_;
  if (evaluations_ % evaluations_per_window == 0) window_ = std::min(2 * window_, widest_window);
  const double begin = evidence_.steps.front().time_unix;
  const double end = evidence_.steps.back().time_unix;
  evidence_.profiles = profiles_;
  std::erase_if(evidence_.profiles, [&](const OpProfile& profile) {
    return profile.time_unix < begin || profile.time_unix > end;
  });
  if (evidence_.profiles.empty()) evidence_.profiles = profiles_;
  if (auto diagnosis = diagnose(evidence_)) {
    for (const Finding& finding : diagnosis->findings) {
      if (finding.share.value_or(0) < least_share) continue;
      std::size_t i = 0;
      while (i < marks_.size() &&
             (marks_[i].rule != finding.rule || seen_at_[i] + 1 != evaluations_))
        ++i;
      if (i == marks_.size()) {
        marks_.push_back({.rule = finding.rule, .first_step = evidence_.steps.front().step});
        seen_at_.push_back(0);
      }
      seen_at_[i] = evaluations_;
      marks_[i].last_step = evidence_.steps.back().step;
      if (*finding.share > marks_[i].share) {
        marks_[i].share = *finding.share;
        marks_[i].summary = finding.summary;
      }
    }
  }
  evidence_.steps.clear();
}

}  // namespace flopmeter
