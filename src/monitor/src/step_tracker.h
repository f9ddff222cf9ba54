// SPDX-License-Identifier: Apache-2.0
//
// StepTracker: the one state machine that decides where a step begins and ends.  Hooks, loaders,
// and integrations report events; loops may also mark steps and phases.  The tracker turns both
// into boundaries for the recorder.  No call allocates, locks, or enters the kernel.
#pragma once

#include "step_recorder.h"

#include <flopmeter/monitor/step_events.h>
#include <flopmeter/telemetry/clock.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

namespace flopmeter {

/// Marks of one step come from one thread; marks from others meanwhile are counted and ignored.
/// Events from other threads than the training thread are ignored.
class StepTracker {
 public:
  /// `has_model`: forward passes of a model are reported.  Without one, a step of the policy
  /// per_optimizer_step is one call of an optimizer.
  StepTracker(StepPolicy policy,
              bool has_model,
              const Clock& clock,
              StepRecorder& recorder) noexcept;

  StepReply on(const StepEvent& event) noexcept;

  void begin_step(const StepInput& input) noexcept;
  /// As begin_step(), for a loop that marks only where steps begin: the next mark ends the step.
  void mark_step(const StepInput& input) noexcept;
  /// The step that mark_step() opened ends with end_step(), not with the next mark.
  void keep_step() noexcept { ended_by_next_mark_ = false; }
  void micro_batch(const StepInput& input) noexcept;
  /// Values for the record of the open step, or of the next one.
  void log(const StepOutcome& outcome) noexcept;
  void end_step(const StepOutcome& outcome) noexcept;
  void abandon_step() noexcept;
  void begin_phase(Phase phase) noexcept;
  void end_phase(Phase phase) noexcept;
  /// `stage` must stay valid as long as the process.
  /// Returns the stage before.
  std::string_view set_stage(std::string_view stage) noexcept {
    return std::exchange(stage_, stage);
  }
  /// Ends or discards what is open, as the end of the run demands.
  void finish() noexcept;

  /// The model is trained in evaluation mode.
  void set_frozen_mode(bool frozen) noexcept { frozen_mode_ = frozen; }
  /// Batches were fetched from a loader before the tracker existed.
  void set_loader_seen() noexcept { loader_seen_ = true; }
  /// The loop is known to train without an optimizer of torch.
  void expect_no_optimizer() noexcept { backwards_without_optimizer_ = no_optimizer_after; }

  [[nodiscard]] std::uint64_t misuse() const noexcept {
    return misuse_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t events() const noexcept {
    return events_.load(std::memory_order_relaxed);
  }

  /// Whether forward_end should state how the backward pass will be reported.  On a device, its end
  /// separates communication, even if the loop marks its phases.
  [[nodiscard]] bool expects_backward(const StepEvent& event) const noexcept {
    return (finds_phases_ || recorder_.uses_device()) && event.gradients && !is_evaluation(event);
  }

  /// Measures once, at start, what one call costs.
  void calibrate() noexcept;

 private:
  /// pre_step: time that belongs to a step which has not begun; out_of_step: an evaluation,
  /// checkpoint, or generation between steps.
  enum class State : std::uint8_t { idle, pre_step, open, out_of_step };
  enum class Boundary : std::uint8_t {
    pre_step,
    step_begin,
    step_end,
    out_of_step_begin,
    out_of_step_end,
    phase,
  };
  static constexpr std::size_t most_depth = 16;
  /// Batches without an optimizer step after which a batch counts as a step.
  static constexpr int longest_accumulation = 512;
  /// Optimizers that step for one batch of a loader; more mean that the loop does not use it.
  static constexpr int most_optimizers = 8;
  /// Optimizer steps in a row without a forward pass of the model after which it is lost.
  static constexpr int most_unexpected_steps = 16;
  /// The same, of optimizers that have none of its parameters.
  static constexpr int most_other_model_steps = 2;
  /// Backward passes without any optimizer step after which each of them is a step.
  static constexpr int no_optimizer_after = 64;

  /// Returns the time of the boundary; `at`: instead of now.
  std::int64_t boundary(Boundary what,
                        const StepOutcome& outcome = {},
                        std::optional<std::int64_t> at = {}) noexcept;

  bool may_mark(bool may_start) noexcept;
  bool is_training_thread() noexcept;
  bool bad_call() noexcept;
  void use_this_thread() noexcept;
  void release_if_idle() noexcept;

  void open(const StepInput& input) noexcept;
  void open_for_loader_batch() noexcept;
  void add_batch(const StepInput& input) noexcept;
  std::int64_t close(const StepOutcome& outcome) noexcept;
  void close_and_go_on(const StepOutcome& outcome) noexcept;
  void close_learned(StepReply& reply) noexcept;
  void close_if_complete() noexcept;
  void enter_pre_step() noexcept;
  void discard(bool keep_batch) noexcept;

  void push(Phase phase) noexcept;
  void pop(Phase phase) noexcept;
  [[nodiscard]] std::size_t position(Phase phase) const noexcept;
  [[nodiscard]] bool finds(Phase phase) const noexcept {
    return finds_phases_ || phase == Phase::data;
  }
  void push_found(Phase phase) noexcept;
  void pop_found(Phase phase) noexcept;
  void assume_backward() noexcept;
  void end_assumed_backward() noexcept;

  void begin_out_of_step(Phase phase, StepReply& reply) noexcept;
  void end_out_of_step(Phase phase) noexcept;
  void end_found_evaluation() noexcept;
  void evaluation_found(StepReply& reply) noexcept;

  void on_loop_begin(const StepEvent& event, StepReply& reply) noexcept;
  void on_loop_end() noexcept;
  void on_fetch_begin(const StepEvent& event, StepReply& reply) noexcept;
  void on_fetch_end(const StepEvent& event) noexcept;
  void on_forward_begin(const StepEvent& event, StepReply& reply) noexcept;
  void on_forward_end(const StepEvent& event) noexcept;
  void on_replay() noexcept;
  void on_optimizer_begin(const StepEvent& event) noexcept;
  void on_optimizer_end(const StepEvent& event, StepReply& reply) noexcept;
  void on_unexpected_optimizer(bool owned, StepReply& reply) noexcept;
  void on_backward_without_optimizer(StepReply& reply) noexcept;
  void on_batch_begin(const StepEvent& event) noexcept;
  void on_batch_end(const StepEvent& event, StepReply& reply) noexcept;
  void on_epoch_end() noexcept;
  void learn_from_forward(const StepEvent& event, StepReply& reply) noexcept;
  [[nodiscard]] bool is_evaluation(const StepEvent& event) const noexcept {
    return !event.training && !(frozen_mode_ && event.gradients);
  }
  [[nodiscard]] bool learns() const noexcept {
    return policy_ == StepPolicy::per_optimizer_step && !wrapped_;
  }

  StepRecorder& recorder_;
  const Clock clock_;
  StepPolicy policy_;
  const bool has_model_;

  State state_ = State::idle;
  std::array<Phase, most_depth> stack_{};
  std::size_t depth_ = 0;
  std::size_t too_deep_ = 0;
  std::string_view stage_;
  StepInput input_;      ///< of the boundary that is being made
  StepOutcome outcome_;  ///< logged for the open step or the next one

  bool wrapped_ = false;  ///< batches come from a wrapped loader, whose fetches end steps
  bool marked_ = false;   ///< the loop marks its steps itself
  bool marks_describe_batches_ = false;
  bool ended_by_next_mark_ = false;  ///< the open step is
  bool automatic_ = false;           ///< the open step was opened for a batch of the wrapped loader
  bool batch_waits_ = false;         ///< the wrapped loader gave a batch that no step has taken
  bool has_batch_ = false;           ///< the open step's batch is known
  bool batch_from_forward_ = false;  ///< from forward passes, whose later batches are added
  bool in_batch_ = false;            ///< between batch_begin and batch_end
  bool resume_pre_step_ = false;     ///< after the out-of-step phase
  bool found_evaluation_ = false;    ///< the out-of-step phase was found by a hook
  bool finds_phases_ = true;       ///< until the loop marks forward, backward, or optimizer itself
  bool backward_assumed_ = false;  ///< it is not reported, and is assumed to run now
  bool backward_begun_ = false;    ///< since the last forward pass
  bool backward_unseen_ = false;   ///< one since the last forward pass may have run unreported
  bool frozen_mode_ = false;
  bool loader_seen_ = false;
  bool has_fetched_ = false;            ///< a batch that the model has not trained on
  std::uintptr_t fetched_from_ = 0;     ///< the loader of the last batch
  std::uintptr_t training_loader_ = 0;  ///< the loader of the last step's batch; 0: not known
  bool trained_ = false;                ///< an optimizer stepped
  int batches_ = 0;                     ///< of the open automatic step
  int optimizer_steps_ = 0;
  int expected_optimizer_steps_ = 0;  ///< 0: not learned yet
  int unexpected_steps_ = 0;
  int other_model_steps_ = 0;
  int backwards_without_optimizer_ = 0;

  std::atomic<std::uintptr_t> training_thread_{0};
  std::atomic<std::uintptr_t> owner_{0};
  std::atomic<std::uint64_t> misuse_{0};
  std::atomic<std::uint64_t> events_{0};
};

}  // namespace flopmeter
