// SPDX-License-Identifier: Apache-2.0
//
// StepRecorder: the work on the training thread between two boundaries of the step tracker.  It
// reads clocks and counters into fixed memory and passes finished steps to the ring; no call
// allocates or enters the kernel, and only marks of a device lock.
#pragma once

#include "device_steps.h"
#include "measure_plan.h"
#include "profile_plan.h"
#include "ring.h"
#include "slot.h"

#include <flopmeter/core/communication.h>
#include <flopmeter/core/compilations.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/monitor/step_events.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace flopmeter {

/// Called by the step tracker only, in the order of its boundaries.
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

  enum class Kind : std::uint8_t { pre_step, step, out_of_step };

  /// Time and work from `now` on belong to a record; a step still has to begin.
  void start(std::int64_t now, Kind kind) noexcept;
  void begin_step(const StepInput& input, std::string_view stage) noexcept;
  /// Returns when the step ended: `now`, or the end of the outcome's interval.
  std::int64_t finish_step(std::int64_t now, const StepOutcome& outcome) noexcept;
  std::int64_t finish_out_of_step(std::int64_t now) noexcept;
  /// Discards the open record; keeps its batch for the next step on demand.
  void discard(bool keep_batch) noexcept;
  /// Time before `now` belongs to the phase before, time after it to `innermost`.
  void switch_phase(std::optional<Phase> innermost, std::int64_t now) noexcept;

  void add_batch(const StepInput& input) noexcept;
  /// Forgets the batch of the open record, and one that was kept.
  void drop_batch() noexcept {
    clear_batch();
    has_kept_ = false;
  }
  [[nodiscard]] bool knows_batch() const noexcept { return has_batch_; }
  [[nodiscard]] static bool has_batch(const StepInput& input) noexcept;

  void tag_out_of_step(Phase phase) noexcept;
  /// Counts the FLOPs of a record that is a generation.
  void count_generation() noexcept;
  /// Sequences and tokens of a generation.
  void add_generated(const StepInput& input) noexcept;
  void set_stage(std::string_view stage) noexcept { now_.record.stage = stage; }

  /// The next step has this number unless its input has one.
  void number_next(std::int64_t step) noexcept { last_step_ = step - 1; }

  /// A call of the tracker, for the cost that the record states.
  void count_call() noexcept {
    ++calls_;
    device_.new_call();
  }
  void set_call_cost(double nanoseconds) noexcept { call_ns_ = nanoseconds; }

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

  /// From now on device times replace those of the host, if there is a device.
  void enable_device() noexcept { device_.enable(); }
  /// Publishes the records that wait for the device; those it does not reach until the deadline
  /// have no device time.
  void finish_device(std::int64_t deadline_ns) noexcept;
  [[nodiscard]] bool uses_device() const noexcept { return device_.is_ready(); }

  /// Any thread: the profile that ended last, once.
  [[nodiscard]] std::unique_ptr<OpProfile> take_profile() noexcept {
    return std::unique_ptr<OpProfile>{profile_.exchange(nullptr, std::memory_order_acq_rel)};
  }

 private:
  void close() noexcept;
  void clear_batch() noexcept;
  void restate_batch(const StepInput& input) noexcept;
  void mark(std::int64_t now) noexcept;
  void count(bool wanted) noexcept {
    if (wanted != counting_enabled_) source_->enable(wanted);
    counting_enabled_ = wanted;
  }
  void count_before_step() noexcept;
  void start_counting() noexcept;
  [[nodiscard]] std::string_view unsupported_note() const noexcept;
  void tag_compilation() noexcept;
  void add_counted_work(const FlopTotals& work) noexcept;
  void stop_counting(std::int64_t step_ns) noexcept;
  void add_communication() noexcept;
  void start_profile() noexcept;
  void stop_profile(std::int64_t now) noexcept;
  void stop_trace(bool keep) noexcept;
  void read_profile() noexcept;
  [[nodiscard]] double missing_queue() const noexcept;
  void follow_queue(StepRecord& record, const std::optional<DeviceTimes>& times) noexcept;
  static void set_device_times(StepRecord& record,
                               const std::optional<DeviceTimes>& times) noexcept;
  void add_late_work(Slot& slot) noexcept;
  void publish(const Slot& slot) noexcept;
  void poll_device() noexcept;
  /// `timed`: between the boundaries, not by the caller.
  void emit(std::int64_t now, bool timed) noexcept;

  const Clock clock_;
  FlopCounter* const source_;
  const std::string_view convention_;
  const FlopsProvenance stated_;  ///< of the FLOPs in an input
  const std::int32_t rank_;
  const std::int32_t world_size_;
  const std::int32_t data_parallel_;
  StepTracer* const tracer_;
  const bool replicated_;        ///< the source reports replicated work
  const bool counts_for_group_;  ///< and this rank is the one that counts it
  const std::int32_t devices_;
  Ring<Slot>& ring_;
  DeviceSteps device_;
  MeasurePlan plan_;
  ProfilePlan profile_plan_;

  Slot now_;   ///< the open record
  Slot kept_;  ///< its batch waits for the next step
  bool has_kept_ = false;
  std::array<std::int64_t, phase_count> phase_ns_{};
  std::array<bool, phase_count> phase_seen_{};
  Phase phase_ = Phase::other;
  std::int64_t mark_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
  bool after_trace_ = false;      ///< writing a trace may have taken seconds since the last step
  bool timed_by_caller_ = false;  ///< the open step has the time that the caller measured
  std::int64_t last_step_ = 0;
  std::int64_t process_steps_ = 0;
  std::uint32_t calls_ = 0;
  bool has_batch_ = false;
  bool counting_enabled_ = false;
  bool counts_before_step_ = false;
  bool profiling_ = false;
  bool tracing_ = false;
  std::int64_t traced_step_;  ///< negative: none
  /// Of a profile whose times the device has not reached.
  struct {
    bool waits = false;
    std::int64_t step = 0;
    bool has_unsupported = false;
  } ended_profile_;
  /// The last train step by the device, in seconds.
  struct {
    /// Of the host, without waiting for the device; the least of all, as the first steps are slow.
    std::optional<double> enqueuing;
    double lag = 0;  ///< at its end
    bool has_idle = false;
  } queue_;
  std::int64_t delayed_step_ = -1;  ///< the last one with a delay
  int catching_up_ = 0;   ///< steps in which the device may still run behind after a delay
  double usual_lag_ = 0;  ///< before that
  std::optional<double> coverage_;                      ///< of the last profiled step
  std::uint64_t compilations_ = compilations().load();  ///< before this step
  std::int64_t train_step_ns_ = 0;  ///< of the last ordinary step, without the wait for data
  FlopTotals before_;
  std::uint64_t late_before_ = 0;
  CommunicationTotals communication_before_;
  double call_ns_ = 0;

  std::atomic<bool> measuring_{false};
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<OpProfile*> profile_{nullptr};  ///< owned; waits for the writing thread
};

}  // namespace flopmeter
