// SPDX-License-Identifier: Apache-2.0
#include "step_tracker.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace flopmeter {
namespace {

std::uintptr_t this_thread_token() noexcept {
  return pthread_self();
}

bool is_out_of_step(Phase phase) noexcept {
  return phase == Phase::evaluation || phase == Phase::checkpoint || phase == Phase::generation;
}

}  // namespace

StepTracker::StepTracker(StepPolicy policy,
                         bool has_model,
                         const Clock& clock,
                         StepRecorder& recorder) noexcept
    : recorder_(recorder), clock_(clock), policy_(policy), has_model_(has_model) {
  use_this_thread();
}

/// The one place where boundaries reach the recorder, in their order.
std::int64_t StepTracker::boundary(Boundary what,
                                   const StepOutcome& outcome,
                                   std::optional<std::int64_t> at) noexcept {
  const std::int64_t now = at ? *at : clock_.monotonic();
  switch (what) {
    case Boundary::pre_step:
      recorder_.start(now, StepRecorder::Kind::pre_step);
      break;
    case Boundary::step_begin:
      if (state_ == State::idle) recorder_.start(now, StepRecorder::Kind::step);
      recorder_.begin_step(input_, stage_);
      break;
    case Boundary::step_end:
      return recorder_.finish_step(now, outcome);
    case Boundary::out_of_step_begin:
      recorder_.start(now, StepRecorder::Kind::out_of_step);
      recorder_.set_stage(stage_);
      break;
    case Boundary::out_of_step_end:
      return recorder_.finish_out_of_step(now);
    case Boundary::phase:
      recorder_.switch_phase(depth_ == 0 ? std::nullopt : std::optional{stack_[depth_ - 1]}, now);
      break;
  }
  return now;
}

bool StepTracker::bad_call() noexcept {
  misuse_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

/// Whether this thread may act on the step: it opened the step, or none is open and it may open
/// one.
bool StepTracker::may_mark(bool may_start) noexcept {
  const std::uintptr_t self = this_thread_token();
  std::uintptr_t owner = owner_.load(std::memory_order_relaxed);
  if (owner == 0 && may_start &&
      owner_.compare_exchange_strong(owner, self, std::memory_order_acquire))
    return true;
  return owner == self || bad_call();
}

/// The same for events, which other threads may report by chance.
bool StepTracker::is_training_thread() noexcept {
  const std::uintptr_t self = this_thread_token();
  if (training_thread_.load(std::memory_order_relaxed) != self) return false;
  std::uintptr_t owner = owner_.load(std::memory_order_relaxed);
  return owner == self ||
         (owner == 0 && owner_.compare_exchange_strong(owner, self, std::memory_order_acquire));
}

void StepTracker::use_this_thread() noexcept {
  training_thread_.store(this_thread_token(), std::memory_order_relaxed);
}

/// A thread without an open step releases the tracker.
void StepTracker::release_if_idle() noexcept {
  if (state_ == State::idle) owner_.store(0, std::memory_order_release);
}

// ---- opening and closing

void StepTracker::open(const StepInput& input) noexcept {
  input_ = input;
  const bool has_batch = recorder_.has_batch(input);
  if (has_batch)
    recorder_.drop_batch();  // the description of the loop takes precedence over that of its loader
  boundary(Boundary::step_begin);
  has_batch_ = has_batch || recorder_.knows_batch();
  state_ = State::open;
  batch_waits_ = batch_from_forward_ = ended_by_next_mark_ = automatic_ = false;
}

/// The loop trains on the batch of the loader, although no forward pass was reported.
void StepTracker::open_for_loader_batch() noexcept {
  open({});
  automatic_ = true;
  batches_ = 1;
}

std::int64_t StepTracker::close(const StepOutcome& outcome) noexcept {
  end_assumed_backward();
  const std::int64_t end = boundary(Boundary::step_end, outcome);
  outcome_ = {};
  depth_ = too_deep_ = 0;
  automatic_ = ended_by_next_mark_ = false;
  state_ = State::idle;
  return end;
}

/// Ends the step; later time belongs to the next one.
void StepTracker::close_and_go_on(const StepOutcome& outcome) noexcept {
  const std::int64_t end = close(outcome);
  boundary(Boundary::pre_step, {}, end);
  state_ = State::pre_step;
}

void StepTracker::close_learned(StepReply& reply) noexcept {
  expected_optimizer_steps_ = optimizer_steps_;
  reply.step_ended = true;
  close_and_go_on(outcome_);
}

/// Ends the open step if the next event cannot be part of it.
void StepTracker::close_if_complete() noexcept {
  if (state_ == State::open && (ended_by_next_mark_ || (automatic_ && optimizer_steps_ > 0)))
    close(outcome_);
}

void StepTracker::enter_pre_step() noexcept {
  if (state_ != State::idle) return;
  boundary(Boundary::pre_step);
  state_ = State::pre_step;
}

void StepTracker::discard(bool keep_batch) noexcept {
  if (state_ == State::idle) return;
  recorder_.discard(keep_batch);
  depth_ = too_deep_ = 0;
  automatic_ = ended_by_next_mark_ = backward_assumed_ = found_evaluation_ = false;
  if (!keep_batch) batch_waits_ = false;
  state_ = State::idle;
}

// ---- phases

std::size_t StepTracker::position(Phase phase) const noexcept {
  std::size_t at = depth_;
  while (at > 0 && stack_[at - 1] != phase) --at;
  return at;  // 0: not open
}

void StepTracker::push(Phase phase) noexcept {
  if (depth_ == most_depth) {
    ++too_deep_;
    bad_call();
    return;
  }
  stack_[depth_++] = phase;
  boundary(Boundary::phase);
}

/// A phase that a hook reports.  Hooks miss events: a begin may come twice, an end without a
/// begin.
void StepTracker::push_found(Phase phase) noexcept {
  const bool no_step =
      state_ == State::out_of_step || (state_ == State::idle && policy_ == StepPolicy::framework);
  if (no_step || !finds(phase) || depth_ == most_depth || position(phase) != 0) return;
  enter_pre_step();
  push(phase);
}

void StepTracker::pop_found(Phase phase) noexcept {
  const std::size_t at = position(phase);
  if (at == 0 || !finds(phase) || state_ == State::out_of_step) return;
  depth_ = at - 1;
  boundary(Boundary::phase);
}

/// Forward turns into backward with one boundary.
void StepTracker::assume_backward() noexcept {
  const std::size_t at = position(Phase::forward);
  if (at != 0 && finds_phases_ && position(Phase::backward) == 0) depth_ = at - 1;
  backward_assumed_ = finds_phases_;
  push_found(Phase::backward);
}

void StepTracker::end_assumed_backward() noexcept {
  if (std::exchange(backward_assumed_, false)) pop_found(Phase::backward);
}

// ---- out-of-step phases

void StepTracker::begin_out_of_step(Phase phase, StepReply& reply) noexcept {
  end_found_evaluation();
  close_if_complete();
  const bool framework = policy_ == StepPolicy::framework;
  if (framework && phase == Phase::evaluation && state_ == State::open) {
    reply.step_discarded = true;  // its FLOPs could not be distinguished from the evaluation's
    discard(false);
  }
  // The loader gave prompts; the batch of the step is made of what is generated.
  if (phase == Phase::generation && batch_waits_) recorder_.drop_batch();
  if (state_ == State::pre_step) {
    resume_pre_step_ = true;
    discard(true);  // the wait before it is not the wait of a step
  }
  if (state_ == State::idle) {
    boundary(Boundary::out_of_step_begin);
    state_ = State::out_of_step;
  }
  // A checkpoint that a loop saves inside a step does not make it another kind of step.
  const bool found_inside =
      policy_ != StepPolicy::explicit_marks && phase == Phase::checkpoint && state_ == State::open;
  if (!found_inside) recorder_.tag_out_of_step(phase);
  if (state_ == State::out_of_step) recorder_.count_generation();
  push(phase);
}

void StepTracker::end_out_of_step(Phase phase) noexcept {
  const std::size_t at = position(phase);
  if (at == 0) return;
  depth_ = at - 1;
  boundary(Boundary::phase);
  if (state_ != State::out_of_step || depth_ != 0) return;
  const std::int64_t end = boundary(Boundary::out_of_step_end);
  state_ = State::idle;
  if (std::exchange(resume_pre_step_, false)) {
    boundary(Boundary::pre_step, {}, end);
    state_ = State::pre_step;
  }
}

/// The model's forward pass begins in evaluation mode: an evaluation between steps, or a part of
/// the step that is open.
void StepTracker::evaluation_found(StepReply& reply) noexcept {
  if (state_ == State::out_of_step) return;
  // A loader that now serves an evaluation does not show when it ends.
  if (has_fetched_ && fetched_from_ == training_loader_) training_loader_ = 0;
  if (learns()) {
    if (state_ == State::open && optimizer_steps_ == 0) return;
    if (state_ == State::open) close_learned(reply);
  } else {
    if (!trained_) return;
    if (automatic_) close_if_complete();
    if (state_ == State::open) return;
  }
  begin_out_of_step(Phase::evaluation, reply);
  found_evaluation_ = true;
}

void StepTracker::end_found_evaluation() noexcept {
  if (std::exchange(found_evaluation_, false)) end_out_of_step(Phase::evaluation);
}

// ---- marks of the loop

void StepTracker::begin_step(const StepInput& input) noexcept {
  if (!may_mark(true)) return;
  recorder_.count_call();
  use_this_thread();
  if (policy_ != StepPolicy::framework) policy_ = StepPolicy::explicit_marks;
  marked_ = true;
  marks_describe_batches_ = recorder_.has_batch(input);
  if (automatic_) discard(false);
  if (ended_by_next_mark_) close(outcome_);
  end_found_evaluation();
  if (state_ == State::open || state_ == State::out_of_step) {
    bad_call();  // the step before was not ended: discard it
    discard(false);
  }
  open(input);
}

void StepTracker::mark_step(const StepInput& input) noexcept {
  begin_step(input);
  ended_by_next_mark_ = state_ == State::open;
}

void StepTracker::micro_batch(const StepInput& input) noexcept {
  if (!may_mark(false)) return;
  recorder_.count_call();
  if (state_ == State::open) {
    add_batch(input);
  } else {
    bad_call();
  }
}

void StepTracker::log(const StepOutcome& outcome) noexcept {
  if (outcome.loss) outcome_.loss = outcome.loss;
  if (outcome.grad_norm) outcome_.grad_norm = outcome.grad_norm;
  if (outcome.learning_rate) outcome_.learning_rate = outcome.learning_rate;
}

void StepTracker::end_step(const StepOutcome& outcome) noexcept {
  if (!may_mark(false)) return;
  recorder_.count_call();
  if (state_ != State::open) {
    bad_call();
    return;
  }
  log(outcome);
  outcome_.interval = outcome.interval;
  outcome_.batch = outcome.batch;
  end_assumed_backward();
  if (outcome.interval) depth_ = 0;
  if (depth_ != 0) bad_call();  // phases that are open end with the step
  if (policy_ == StepPolicy::framework) {
    close_and_go_on(outcome_);
  } else {
    close(outcome_);
  }
  release_if_idle();
}

void StepTracker::abandon_step() noexcept {
  if (!may_mark(true)) return;
  discard(false);
  outcome_ = {};
  if (policy_ == StepPolicy::framework) enter_pre_step();
  release_if_idle();
}

void StepTracker::begin_phase(Phase phase) noexcept {
  if (!may_mark(true)) return;
  recorder_.count_call();
  if (phase == Phase::forward || phase == Phase::backward || phase == Phase::optimizer)
    finds_phases_ = false;  // phases that the loop marks take precedence
  if (is_out_of_step(phase)) {
    StepReply ignored;
    begin_out_of_step(phase, ignored);
    return;
  }
  enter_pre_step();
  push(phase);
}

void StepTracker::end_phase(Phase phase) noexcept {
  if (!may_mark(false)) return;
  recorder_.count_call();
  if (too_deep_ != 0) {
    --too_deep_;
    return;
  }
  const std::size_t at = position(phase);
  if (at == 0) {
    bad_call();
    release_if_idle();
    return;
  }
  if (at != depth_) bad_call();  // phases inside it that are open end too
  if (is_out_of_step(phase)) {
    end_out_of_step(phase);
  } else {
    depth_ = at - 1;
    boundary(Boundary::phase);
  }
  release_if_idle();
}

void StepTracker::finish() noexcept {
  if (!may_mark(true)) return;
  end_found_evaluation();
  close_if_complete();
  if (state_ == State::open && learns() && optimizer_steps_ > 0) close(outcome_);
  discard(false);
  release_if_idle();
}

void StepTracker::calibrate() noexcept {
  constexpr int pairs = 200;
  // A pair of phase marks is the most common call; begin and end of a step cost about as much.
  const std::int64_t start = monotonic_nanoseconds();
  if (!may_mark(true)) return;
  enter_pre_step();
  for (int i = 0; i < pairs; ++i) {
    push_found(Phase::forward);
    pop_found(Phase::forward);
  }
  discard(false);
  release_if_idle();
  recorder_.set_call_cost(static_cast<double>(monotonic_nanoseconds() - start) / (2 * pairs));
}

}  // namespace flopmeter
