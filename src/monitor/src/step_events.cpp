// SPDX-License-Identifier: Apache-2.0
//
// The tracker's rules for events of hooks, loaders, and integrations.
#include "step_tracker.h"

#include <utility>

namespace flopmeter {
namespace {

const StepInput& described(const StepEvent& event) noexcept {
  static constexpr StepInput unknown{};
  const StepInput* input = event.describe != nullptr ? event.describe(event.context) : nullptr;
  return input != nullptr ? *input : unknown;
}

}  // namespace

StepReply StepTracker::on(const StepEvent& event) noexcept {
  StepReply reply;
  if (event.kind == StepEventKind::loop_begin && owner_.load(std::memory_order_relaxed) == 0)
    use_this_thread();
  if (!is_training_thread()) return reply;
  events_.store(events_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  recorder_.count_call();
  switch (event.kind) {
    case StepEventKind::loop_begin:
      on_loop_begin(event, reply);
      break;
    case StepEventKind::loop_end:
      on_loop_end();
      break;
    case StepEventKind::fetch_begin:
      on_fetch_begin(event, reply);
      break;
    case StepEventKind::fetch_end:
      on_fetch_end(event);
      break;
    case StepEventKind::forward_begin:
      on_forward_begin(event, reply);
      break;
    case StepEventKind::forward_end:
      on_forward_end(event);
      break;
    case StepEventKind::backward_begin:
      backward_begun_ = true;
      push_found(Phase::backward);
      break;
    case StepEventKind::backward_end:
      pop_found(Phase::backward);
      break;
    case StepEventKind::replay:
      on_replay();
      break;
    case StepEventKind::optimizer_begin:
      on_optimizer_begin(event);
      break;
    case StepEventKind::optimizer_end:
      on_optimizer_end(event, reply);
      break;
    case StepEventKind::evaluation_begin:
      begin_out_of_step(Phase::evaluation, reply);
      break;
    case StepEventKind::evaluation_end:
      end_out_of_step(Phase::evaluation);
      break;
    case StepEventKind::checkpoint_begin:
      begin_out_of_step(Phase::checkpoint, reply);
      break;
    case StepEventKind::checkpoint_end:
      end_out_of_step(Phase::checkpoint);
      break;
    case StepEventKind::generation_begin:
      begin_out_of_step(Phase::generation, reply);
      break;
    case StepEventKind::generation_end:
      if (state_ == State::out_of_step) recorder_.add_generated(described(event));
      end_out_of_step(Phase::generation);
      break;
    case StepEventKind::batch_begin:
      on_batch_begin(event);
      break;
    case StepEventKind::batch_end:
      on_batch_end(event, reply);
      break;
    case StepEventKind::epoch_end:
      on_epoch_end();
      break;
  }
  release_if_idle();
  return reply;
}

void StepTracker::on_loop_begin(const StepEvent& event, StepReply& reply) noexcept {
  if (trained_ && !marked_ && !event.gradients && event.policy == StepPolicy::per_optimizer_step) {
    reply.not_training = true;
    return;
  }
  use_this_thread();
  if (policy_ == StepPolicy::framework || learns()) {
    if (const auto step = described(event).step) recorder_.number_next(*step);
    enter_pre_step();
    return;
  }
  close_if_complete();  // a loop that was left while its iterator is kept
  end_found_evaluation();
  if (!marked_) policy_ = event.policy;
  wrapped_ = true;
}

void StepTracker::on_loop_end() noexcept {
  if (automatic_ && optimizer_steps_ > 0) {
    close(outcome_);
  } else if (automatic_ || state_ == State::pre_step) {
    discard(false);
  }
  batch_waits_ = false;
}

void StepTracker::on_fetch_begin(const StepEvent& event, StepReply& reply) noexcept {
  if (policy_ == StepPolicy::framework) {
    push_found(Phase::data);
    return;
  }
  if (learns()) {
    fetched_from_ = event.loader;
    has_fetched_ = true;
    if (event.loader != 0 && event.loader == training_loader_) end_found_evaluation();
    if (state_ == State::out_of_step) return;
    loader_seen_ = true;
    if (state_ == State::open && optimizer_steps_ > 0 && has_model_) close_learned(reply);
    push_found(Phase::data);
    return;
  }
  end_found_evaluation();
  if (ended_by_next_mark_) close(outcome_);
  if (batch_waits_ && !marked_ && state_ != State::open) open_for_loader_batch();
  const bool waits = policy_ == StepPolicy::per_optimizer_step && optimizer_steps_ == 0 &&
                     batches_ < longest_accumulation;
  if (automatic_ && !waits) {
    reply.step_ended = true;
    close_and_go_on(outcome_);
  }
  batch_waits_ = false;
  if (position(Phase::data) == 0 && state_ != State::out_of_step) {
    enter_pre_step();
    push(Phase::data);
  }
}

void StepTracker::on_fetch_end(const StepEvent& event) noexcept {
  pop_found(Phase::data);
  if (!event.has_batch || !wrapped_) return;
  if (automatic_) {
    ++batches_;
    add_batch(described(event));
    return;
  }
  optimizer_steps_ = 0;
  if (state_ == State::open) return;  // the step's own marks describe its batch
  enter_pre_step();
  recorder_.drop_batch();
  if (!marked_ || !marks_describe_batches_) recorder_.add_batch(described(event));
  batch_waits_ = true;
}

void StepTracker::add_batch(const StepInput& input) noexcept {
  recorder_.add_batch(input);
  has_batch_ = true;
}

void StepTracker::on_forward_begin(const StepEvent& event, StepReply& reply) noexcept {
  if (is_evaluation(event)) {
    evaluation_found(reply);
    return;
  }
  end_assumed_backward();
  end_found_evaluation();
  if (state_ == State::out_of_step) return;
  if (learns()) {
    learn_from_forward(event, reply);
  } else {
    if (batch_waits_ && !marked_ && state_ != State::open) open_for_loader_batch();
    if (state_ == State::open && event.gradients && (!has_batch_ || batch_from_forward_)) {
      const StepInput& input = described(event);
      if (recorder_.has_batch(input)) {
        add_batch(input);
        batch_from_forward_ = true;
      }
    }
  }
  push_found(Phase::forward);
}

void StepTracker::learn_from_forward(const StepEvent& event, StepReply& reply) noexcept {
  // Without a loader, the next forward pass is the first sign of the next step.
  if (state_ == State::open && optimizer_steps_ > 0 && !loader_seen_) close_learned(reply);
  if (event.gradients && std::exchange(has_fetched_, false)) training_loader_ = fetched_from_;
  const bool begun = state_ == State::open &&
                     (std::exchange(backward_begun_, false) || backward_unseen_ ||
                      (event.backward_begun != nullptr && event.backward_begun(event.context)));
  if (event.gradients && begun && !trained_) on_backward_without_optimizer(reply);
  if (state_ != State::open) {
    unexpected_steps_ = other_model_steps_ = optimizer_steps_ = 0;
    open(event.gradients ? described(event) : StepInput{});
    has_batch_ = event.gradients;
  } else if (event.gradients && (begun || !has_batch_)) {
    add_batch(described(event));
  }
}

/// No optimizer step is reported: the loop has a custom update or a compiled step.
void StepTracker::on_backward_without_optimizer(StepReply& reply) noexcept {
  ++backwards_without_optimizer_;
  if (backwards_without_optimizer_ == no_optimizer_after) {
    reply.no_optimizer = true;
    discard(false);
  } else if (backwards_without_optimizer_ > no_optimizer_after && state_ == State::open) {
    optimizer_steps_ = 1;
    close_learned(reply);
  }
}

void StepTracker::on_forward_end(const StepEvent& event) noexcept {
  if (is_evaluation(event) || state_ == State::out_of_step) return;
  if (event.gradients) {
    backward_begun_ = false;
    backward_unseen_ = event.backward != BackwardReport::reported;
    if (event.backward == BackwardReport::unseen && !backward_assumed_) assume_backward();
  }
  pop_found(Phase::forward);
}

/// The model itself is not called: this is the first sign of the step.  A graph of a part of the
/// model runs within a forward pass, which has opened the step.
void StepTracker::on_replay() noexcept {
  if (!learns() || state_ == State::open || state_ == State::out_of_step) return;
  unexpected_steps_ = other_model_steps_ = optimizer_steps_ = 0;
  open({});
}

void StepTracker::on_optimizer_begin(const StepEvent& event) noexcept {
  end_assumed_backward();
  if (policy_ == StepPolicy::framework) {
    // A framework may report an optimizer step that the optimizer then skips.
    if (in_batch_) ++optimizer_steps_;
    // It reports the phases inside a closure itself.
    if (event.closure) return;
  }
  push_found(Phase::optimizer);
}

void StepTracker::on_optimizer_end(const StepEvent& event, StepReply& reply) noexcept {
  pop_found(Phase::optimizer);
  ++optimizer_steps_;
  trained_ = true;
  if (!learns()) return;
  const auto owns = [&] { return event.owns == nullptr || event.owns(event.context); };
  if (found_evaluation_ && owns()) {
    frozen_mode_ = true;  // the pass was not an evaluation
    end_found_evaluation();
  }
  if (!has_model_) {
    if (state_ != State::open) open({});
    close_learned(reply);
    optimizer_steps_ = 0;
  } else if (state_ == State::open) {
    if (optimizer_steps_ == expected_optimizer_steps_) {
      close_learned(reply);
    } else if (optimizer_steps_ == most_optimizers) {
      loader_seen_ = false;
    }
  } else if (state_ != State::out_of_step) {
    on_unexpected_optimizer(owns(), reply);
  }
}

/// An optimizer stepped after the step had ended: one more belongs to a step, or the loop trains
/// another model.
void StepTracker::on_unexpected_optimizer(bool owned, StepReply& reply) noexcept {
  ++expected_optimizer_steps_;
  ++unexpected_steps_;
  if (!owned) ++other_model_steps_;
  enter_pre_step();
  reply.model_lost =
      unexpected_steps_ == most_unexpected_steps || other_model_steps_ == most_other_model_steps;
}

void StepTracker::on_batch_begin(const StepEvent& event) noexcept {
  in_batch_ = true;
  optimizer_steps_ = 0;
  if (state_ == State::open) {
    add_batch(described(event));
  } else if (state_ == State::pre_step) {
    open(described(event));
  }
  if (state_ == State::open) push_found(Phase::forward);
}

void StepTracker::on_batch_end(const StepEvent& event, StepReply& reply) noexcept {
  if (!std::exchange(in_batch_, false)) return;
  if (state_ == State::open && depth_ != 0) {
    depth_ = 0;
    boundary(Boundary::phase);
  }
  if (optimizer_steps_ == 0) return;
  reply.step_ended = true;
  if (state_ == State::open) {
    if (event.outcome != nullptr) log(*event.outcome);
    close_and_go_on(outcome_);
  } else {
    enter_pre_step();  // the rest of a step that was discarded
  }
}

/// A batch that began and did not end was skipped with the rest of its epoch.
void StepTracker::on_epoch_end() noexcept {
  if (!std::exchange(in_batch_, false)) return;
  discard(false);
  enter_pre_step();
}

}  // namespace flopmeter
