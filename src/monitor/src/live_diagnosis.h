// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/diagnosis.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// Diagnoses the newest steps while the run goes on.  Used by the writing thread alone.
class LiveDiagnosis {
 public:
  explicit LiveDiagnosis(PeakTable peaks) : peaks_(std::move(peaks)) {}

  void add(const StepRecord& record);
  void add(OpProfile profile);

  /// Now and then: the findings, where others than before stand since two looks.
  std::optional<std::vector<Finding>> look(std::int64_t now_ns);
  /// The findings of the newest steps; none where they are too few.
  [[nodiscard]] std::vector<Finding> findings() const;

 private:
  PeakTable peaks_;
  std::deque<StepRecord> steps_;
  std::deque<OpProfile> profiles_;
  std::int64_t looked_ns_ = 0;
  std::vector<std::string> seen_;  ///< rules at the look before
  std::vector<std::string> said_;
};

}  // namespace flopmeter
