// SPDX-License-Identifier: Apache-2.0
//
// The noter's surveys of all operators, on the few steps that are tagged so.
#include "step_noter.h"

#include <algorithm>

namespace flopmeter {

/// The one thing here that may allocate and lock: on the few steps that are surveyed, and tagged
/// so.
void StepNoter::start_survey() noexcept {
  if (surveying_) stop_survey(clock_.monotonic());  // of a step that was left open
  if (source_ == nullptr || now_.record.tag != StepTag::train ||
      !survey_plan_.wants(effective_steps_))
    return;
  try {
    surveying_ = source_->begin_survey();
  } catch (...) {
    surveying_ = false;
  }
  if (surveying_) {
    now_.record.tag = StepTag::survey;
  } else {
    survey_plan_.surveyed(effective_steps_, 0);  // not this time
  }
}

void StepNoter::stop_survey(std::int64_t now) noexcept {
  const std::int64_t step_ns =
      now - now_.start_ns - phase_ns_[static_cast<std::size_t>(Phase::data)];
  if (!surveying_) {
    if (now_.record.tag == StepTag::train) train_step_ns_ = step_ns;
    return;
  }
  surveying_ = false;
  const double before = static_cast<double>(std::max<std::int64_t>(train_step_ns_, 1));
  survey_plan_.surveyed(effective_steps_, static_cast<double>(step_ns) / before - 1);
  try {
    auto seen = source_->end_survey();
    if (!seen) return;
    seen->step = now_.record.step;
    seen->time_unix = static_cast<double>(clock_.unix_time()) / 1e9;
    const std::unique_ptr<SurveyResult> untaken{survey_.exchange(
        std::make_unique<SurveyResult>(*std::move(seen)).release(), std::memory_order_acq_rel)};
  } catch (...) {  // no memory: no survey
  }
}

}  // namespace flopmeter
