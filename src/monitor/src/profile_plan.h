// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/monitor/options.h>

#include <algorithm>
#include <cstdint>

namespace flopmeter {

/// Decides which steps are profiled: one early, one when the run has settled, then one every
/// `profile_frequency` steps, less often if that would exceed the budget.  Used by the training
/// thread.
class ProfilePlan {
 public:
  explicit ProfilePlan(const Options& options)
      : frequency_(options.mode == Mode::estimate ? 0 : options.profile_frequency),
        budget_(options.overhead_budget),
        next_(std::min(frequency_, first)) {}

  [[nodiscard]] bool wants(std::int64_t process_step) const noexcept {
    return frequency_ > 0 && process_step >= next_;
  }
  /// A profiled step took 1 + `extra` times as long as an ordinary one.
  void profiled(std::int64_t process_step, double extra) noexcept {
    while (extra > budget_ * static_cast<double>(frequency_) && frequency_ < longest)
      frequency_ *= 2;
    const bool settled = process_step >= second || frequency_ < second;
    next_ = settled ? process_step + frequency_ : second;
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
