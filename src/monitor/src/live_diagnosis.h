// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/diagnosis.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// Diagnoses the newest steps during the run.  Used by the writer thread only.
class LiveDiagnosis {
 public:
  explicit LiveDiagnosis(PeakTable peaks) : peaks_(std::move(peaks)) {}

  void add(const StepRecord& record);
  void add(OpProfile profile);

  /// Rate-limited: findings that changed and held for two evaluations.
  std::optional<std::vector<Finding>> evaluate(std::int64_t now_ns);
  /// Findings of all steps, as `flopmeter diagnose` reports them.
  [[nodiscard]] std::vector<Finding> findings() const;

 private:
  /// Without the first steps of the process; empty if there are too few.
  [[nodiscard]] std::vector<Finding> newest_findings() const;
  /// `totals`: of the steps that the findings are about; empty: of `steps`.
  [[nodiscard]] std::vector<Finding> find(std::vector<StepRecord> steps,
                                          std::optional<StepTotals> totals) const;

  PeakTable peaks_;
  StepTotals totals_;  ///< of all steps
  std::deque<StepRecord> steps_;
  std::deque<OpProfile> profiles_;
  std::int64_t evaluated_ns_ = 0;
  std::vector<std::string> seen_;  ///< rules of the previous evaluation
  std::vector<std::string> reported_;
};

}  // namespace flopmeter
