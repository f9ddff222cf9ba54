// SPDX-License-Identifier: Apache-2.0
//
// StepRecorder: the part of the monitor that runs on the training thread.  It reads clocks and
// counters into fixed memory and passes finished steps to the ring; no call allocates, locks, or
// enters the kernel.
#pragma once

#include "measure_plan.h"
#include "profile_plan.h"
#include "ring.h"
#include "slot.h"

#include <flopmeter/core/communication.h>
#include <flopmeter/monitor/monitor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace flopmeter {

/// Calls of one step come from one thread; calls from others meanwhile are counted and ignored.
class StepRecorder {
 public:
  StepRecorder(const Options& options,
               const Connections& connections,
               std::string_view convention,
               Ring<Slot>& ring);
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;
  StepRecorder(StepRecorder&&) = delete;
  StepRecorder& operator=(StepRecorder&&) = delete;
  ~StepRecorder() { const auto untaken = take_profile(); }

  void begin_step(const StepInput& input) noexcept;
  void micro_batch(const StepInput& input) noexcept;
  void end_step(const StepOutcome& outcome) noexcept;
  void abandon_step() noexcept;
  void begin_phase(Phase phase) noexcept;
  void end_phase(Phase phase) noexcept;
  void tag_step(StepTag tag) noexcept;

  [[nodiscard]] MeasurePlan& plan() noexcept { return plan_; }
  [[nodiscard]] const MeasurePlan& plan() const noexcept { return plan_; }
  [[nodiscard]] bool measuring() const noexcept {
    return measuring_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t steps() const noexcept {
    return steps_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t dropped() const noexcept {
    return dropped_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t misuse() const noexcept {
    return misuse_.load(std::memory_order_relaxed);
  }

  /// Any thread: the profile that ended last, once.
  [[nodiscard]] std::unique_ptr<OpProfile> take_profile() noexcept {
    return std::unique_ptr<OpProfile>{profile_.exchange(nullptr, std::memory_order_acq_rel)};
  }

  /// Nanoseconds that one call of this class costs; measured once, at start.
  void calibrate() noexcept;

 private:
  /// early: a phase began before its step did; aside: evaluation or checkpoint between steps.
  enum class State : std::uint8_t { idle, early, open, aside };
  static constexpr std::size_t most_depth = 16;

  bool enter(bool may_start) noexcept;
  bool bad_call() noexcept;
  void open(State state, std::int64_t now) noexcept;
  void close() noexcept;
  void mark(std::int64_t now) noexcept;
  /// The open step began then, and no phase was told.
  void take_start(std::int64_t start) noexcept {
    now_.start_ns = mark_ns_ = start;
    phase_ns_ = {};
    phase_seen_ = {};
    depth_ = too_deep_ = 0;
  }
  void count(bool wanted) noexcept {
    if (wanted != counting_enabled_) source_->enable(wanted);
    counting_enabled_ = wanted;
  }
  /// Work before a step whose time is noted already is the step's own, as that time is.
  void count_early() noexcept {
    counted_early_ = source_ != nullptr && plan_.wants(process_steps_, 0);
    if (!counted_early_) return;
    count(true);
    before_ = source_->snapshot();
  }
  void add_batch(const StepInput& input) noexcept;
  void start_counting() noexcept;
  void stop_counting(std::int64_t step_ns) noexcept;
  void note_communication() noexcept;
  void start_profile() noexcept;
  void stop_profile(std::int64_t now) noexcept;
  void emit(std::int64_t now) noexcept;

  const Clock clock_;
  FlopCounter* const source_;
  const std::string_view convention_;
  const std::int32_t rank_;
  const std::int32_t world_size_;
  const std::int32_t data_parallel_;
  const bool replicated_;        ///< the source tells replicated work
  const bool counts_for_group_;  ///< and this rank is the one that counts it
  const std::int32_t devices_;
  Ring<Slot>& ring_;
  MeasurePlan plan_;
  ProfilePlan profile_plan_;

  State state_ = State::idle;
  Slot now_;  ///< the open step
  std::array<std::int64_t, phase_count> phase_ns_{};
  std::array<bool, phase_count> phase_seen_{};
  std::array<Phase, most_depth> stack_{};
  std::size_t depth_ = 0;
  std::size_t too_deep_ = 0;
  std::int64_t mark_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
  bool timed_by_caller_ = false;  ///< the open step has the time that the caller measured
  std::int64_t last_step_ = 0;
  std::int64_t process_steps_ = 0;
  std::uint32_t calls_ = 0;
  bool has_batch_ = false;
  bool counting_enabled_ = false;
  bool counted_early_ = false;  ///< since a phase that came before the step
  bool profiling_ = false;
  std::int64_t train_step_ns_ = 0;  ///< of the last ordinary step, without the wait for data
  FlopTotals before_;
  CommunicationTotals communication_before_;
  double call_ns_ = 0;

  std::atomic<std::uintptr_t> owner_{0};
  std::atomic<bool> measuring_{false};
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> misuse_{0};
  std::atomic<OpProfile*> profile_{nullptr};  ///< owned; waits for the writing thread
};

}  // namespace flopmeter
