// SPDX-License-Identifier: Apache-2.0
//
// The recorder's profiles of all operators, on the few steps that are tagged so.
#include "step_recorder.h"

#include <algorithm>
#include <utility>

namespace flopmeter {

namespace {

/// The time in supported operators over that in all that compute.  Empty if unsupported work ran
/// that the profile does not show.
std::optional<double> coverage_of(const OpProfile& profile, bool has_unsupported) {
  double supported = 0;
  double unsupported = 0;
  for (const OpProfileRow& row : profile.rows) {
    if (row.kind == OpKind::compute) supported += row.self.value;
    if (row.kind == OpKind::unknown) unsupported += row.self.value;
  }
  if (supported + unsupported <= 0 || (has_unsupported && unsupported <= 0)) return std::nullopt;
  return supported / (supported + unsupported);
}

}  // namespace

/// The one thing here that may allocate and lock: on the few steps that are profiled, and tagged
/// so.
void StepRecorder::start_profile() noexcept {
  if (profiling_) stop_profile(clock_.monotonic());  // of a step that did not end
  stop_trace(false);
  if (now_.record.tag == StepTag::train && process_steps_ == traced_step_) {
    tracing_ = tracer_->begin(now_.record.step);
    if (tracing_) {
      now_.record.tag = StepTag::profile;
      return;
    }
    ++traced_step_;
  }
  if (source_ == nullptr || now_.record.tag != StepTag::train ||
      !profile_plan_.wants(process_steps_))
    return;
  try {
    profiling_ = source_->begin_profile();
  } catch (...) {
    profiling_ = false;
  }
  if (profiling_) {
    now_.record.tag = StepTag::profile;
  } else {
    profile_plan_.profiled(process_steps_, 0);  // not this time
  }
}

void StepRecorder::stop_trace(bool keep) noexcept {
  if (std::exchange(tracing_, false)) tracer_->end(keep);
}

void StepRecorder::stop_profile(std::int64_t now) noexcept {
  const std::int64_t step_ns =
      now - now_.start_ns - phase_ns_[static_cast<std::size_t>(Phase::data)];
  if (!profiling_) {
    if (now_.record.tag == StepTag::train) train_step_ns_ = step_ns;
    return;
  }
  profiling_ = false;
  const double before = static_cast<double>(std::max<std::int64_t>(train_step_ns_, 1));
  profile_plan_.profiled(process_steps_, static_cast<double>(step_ns) / before - 1);
  try {
    auto seen = source_->end_profile();
    if (!seen) return;
    coverage_ = coverage_of(*seen, now_.record.unsupported_op_calls.value_or(0) != 0);
    now_.record.coverage = coverage_;
    seen->step = now_.record.step;
    seen->time_unix = static_cast<double>(clock_.unix_time()) / 1e9;
    const std::unique_ptr<OpProfile> untaken{profile_.exchange(
        std::make_unique<OpProfile>(*std::move(seen)).release(), std::memory_order_acq_rel)};
  } catch (...) {  // no memory: no profile
  }
}

}  // namespace flopmeter
