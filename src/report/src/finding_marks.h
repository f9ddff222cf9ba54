// SPDX-License-Identifier: Apache-2.0
//
// FindingMarks: which steps a finding is about.  Looks at a few hundred steps at a time, so that a
// run of any length takes bounded memory.
#pragma once

#include <flopmeter/analysis/evidence.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flopmeter {

/// A range of steps over which one rule fired.
struct FindingMark {
  std::string rule;
  std::string summary;  ///< of its most expensive part
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double share = 0;  ///< of the time, in its most expensive part
};

/// Takes the records of one rank in order.
class FindingMarks {
 public:
  /// `about` gives peaks; `window` is the number of steps evaluated together, more in a long run.
  FindingMarks(Evidence about, std::size_t window);

  void add(const StepRecord& record);
  /// Profiles for the records to come.
  void set_profiles(std::vector<OpProfile> profiles) { profiles_ = std::move(profiles); }
  /// Looks at the records that do not fill a window, and frees their memory and the profiles.
  void settle();
  /// Findings, in order of the steps.
  [[nodiscard]] const std::vector<FindingMark>& marks() const { return marks_; }

 private:
  void evaluate();

  Evidence evidence_;
  std::vector<OpProfile> profiles_;
  std::size_t window_;
  std::vector<FindingMark> marks_;
  std::int64_t evaluations_ = 0;
  std::vector<std::int64_t> seen_at_;  ///< by mark: the last evaluation that found it
};

}  // namespace flopmeter
