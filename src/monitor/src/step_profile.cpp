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

/// The host enqueues a profiled step more slowly than others.
constexpr double profiled_factor = 1.5;
constexpr double profiled_seconds = 2e-3;
constexpr double longest_delay = 0.5;
/// A device that is idle for less than this part of a step limits the steps itself.
constexpr double notable_idle = 0.05;
constexpr int longest_catching_up = 16;

double seconds_of(const std::optional<Seconds>& time) {
  return time ? time->value : 0;
}

}  // namespace

/// Device time of the queue that is missing for the device to be busy throughout a profiled step.
double StepRecorder::missing_queue() const noexcept {
  const double last = static_cast<double>(train_step_ns_) / 1e9;
  const double wanted =
      profiled_factor * std::min(queue_.enqueuing.value_or(last), last) + profiled_seconds;
  return queue_.lag < wanted ? std::min(wanted - queue_.lag, longest_delay) : 0;
}

/// Follows how far the host is ahead of the device.  Steps in which a host-bound device works off a
/// delay are shorter than others, and count as part of the profile.
void StepRecorder::follow_queue(StepRecord& record,
                                const std::optional<DeviceTimes>& times) noexcept {
  if (!times || !times->lag) return;
  const double before = std::exchange(queue_.lag, times->lag->value);
  if (record.tag == StepTag::profile && record.step == delayed_step_) {
    usual_lag_ = before;
    catching_up_ = queue_.has_idle ? longest_catching_up : 0;
    return;
  }
  if (record.tag != StepTag::train) return;
  const double step = times->step.value;
  if (catching_up_ > 0) {
    if (before > usual_lag_ + notable_idle * step) {
      --catching_up_;
      record.tag = StepTag::profile;
      return;
    }
    catching_up_ = 0;
  }
  const auto& phases = record.host_phases;
  double enqueuing = 0;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
    enqueuing += seconds_of(phases[static_cast<std::size_t>(phase)]);
  enqueuing = std::max(enqueuing - seconds_of(times->synchronization), 0.0);
  queue_.enqueuing = std::min(queue_.enqueuing.value_or(enqueuing), enqueuing);
  queue_.has_idle = times->idle && times->idle->max.value > notable_idle * step;
}

/// The only function here that may allocate and lock: on the few steps that are profiled, which are
/// tagged.
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
    device_.delay_forward(missing_queue());
  } else {
    profile_plan_.profiled(process_steps_, 0);  // not this time
  }
}

void StepRecorder::stop_trace(bool keep) noexcept {
  after_trace_ = std::exchange(tracing_, false);
  if (after_trace_) tracer_->end(keep);
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
  const double delayed_ns = device_.delayed() * 1e9;
  if (delayed_ns > 0) delayed_step_ = now_.record.step;
  profile_plan_.profiled(process_steps_, (static_cast<double>(step_ns) + delayed_ns) / before - 1);
  ended_profile_ = {.waits = true,
                    .step = now_.record.step,
                    .has_unsupported = now_.record.unsupported_op_calls.value_or(0) != 0};
  read_profile();
  now_.record.coverage = coverage_;
}

/// A device may not have reached the end of the profile yet.
void StepRecorder::read_profile() noexcept {
  if (!ended_profile_.waits) return;
  try {
    auto seen = source_->end_profile();
    if (!seen) return;
    ended_profile_.waits = false;
    if (seen->rows.empty()) return;
    coverage_ = coverage_of(*seen, ended_profile_.has_unsupported);
    seen->step = ended_profile_.step;
    seen->time_unix = static_cast<double>(clock_.unix_time()) / 1e9;
    const std::unique_ptr<OpProfile> untaken{profile_.exchange(
        std::make_unique<OpProfile>(*std::move(seen)).release(), std::memory_order_acq_rel)};
  } catch (...) {  // no memory: no profile
    ended_profile_.waits = false;
  }
}

}  // namespace flopmeter
