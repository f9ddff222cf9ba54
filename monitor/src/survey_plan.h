// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/monitor/options.h>

#include <algorithm>
#include <cstdint>

namespace flopmeter {

/// Decides which steps are surveyed: one early, one when the run has settled, then one every
/// `survey_frequency` steps, less often where that would pass the budget.  Used by the training
/// thread.
class SurveyPlan {
 public:
  explicit SurveyPlan(const Options& options)
      : frequency_(options.mode == Mode::estimate ? 0 : options.survey_frequency),
        budget_(options.overhead_budget),
        next_(std::min(frequency_, first)) {}

  [[nodiscard]] bool wants(std::int64_t effective_step) const noexcept {
    return frequency_ > 0 && effective_step >= next_;
  }
  /// A surveyed step took `extra` of an ordinary step's time more than one.
  void surveyed(std::int64_t effective_step, double extra) noexcept {
    while (extra > budget_ * static_cast<double>(frequency_) && frequency_ < longest)
      frequency_ *= 2;
    const bool settled = effective_step >= second || frequency_ < second;
    next_ = settled ? effective_step + frequency_ : second;
  }

 private:
  static constexpr std::int64_t first = 5;
  static constexpr std::int64_t second = 50;
  static constexpr std::int64_t longest = std::int64_t{1} << 30U;
  std::int64_t frequency_;
  double budget_;
  std::int64_t next_;
};

}  // namespace flopmeter
