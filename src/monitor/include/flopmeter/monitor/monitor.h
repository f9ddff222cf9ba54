// SPDX-License-Identifier: Apache-2.0
//
// Monitor: watches a training loop.  The loop calls it at each step; what it notes goes through a
// fixed ring to one background thread, which works out MFU and writes.  After start() nothing here
// throws, blocks, allocates or enters the kernel on the caller's thread.
#pragma once

#include <flopmeter/core/exchange.h>
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/world.h>
#include <flopmeter/monitor/options.h>
#include <flopmeter/monitor/subscription.h>
#include <flopmeter/telemetry/clock.h>
#include <flopmeter/telemetry/gpu_monitor.h>
#include <flopmeter/telemetry/hardware_counters.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace flopmeter {

/// What a loop can tell about a step when it begins.  All of it is optional; spans are read before
/// begin returns.
struct StepInput {
  std::optional<std::int64_t> samples{};
  std::optional<std::int64_t> tokens{};  ///< real tokens; else the sum of sequence_lengths
  std::optional<std::int64_t> padded_tokens{};
  std::optional<std::int64_t> visual_tokens{};
  std::optional<std::int64_t> step{};  ///< the loop's own number; else one more than before
  std::optional<std::int32_t> epoch{};
  StepTag tag = StepTag::train;
  std::span<const std::int64_t> sequence_lengths{};  ///< real length of each sequence
  std::int64_t padded_length = 0;
  std::span<const ImageGrid> images{};
  std::optional<Flops> flops{};  ///< the caller's own figure, used as it is
  Dtype flops_dtype = Dtype::bf16;
};

/// What a loop can tell when a step has ended.
struct StepOutcome {
  std::optional<double> loss{};
  std::optional<double> grad_norm{};
  std::optional<double> learning_rate{};
  /// Start and end on the monotonic clock, in nanoseconds, where the caller took the time itself:
  /// what it did before or after is not the step's, and phases are not told apart.
  std::optional<std::pair<std::int64_t, std::int64_t>> interval{};
};

/// Memory of the device as an allocator sees it, in bytes.
struct DeviceMemory {
  std::optional<std::int64_t> current{}, peak{}, reserved{};
};

/// What the monitor is connected to.  Everything pointed at must outlive the monitor.
struct Connections {
  FlopCounter* source = nullptr;       ///< counts; none: no counting
  FlopEstimator* estimator = nullptr;  ///< estimates; none: no estimate
  Exchange* exchange = nullptr;        ///< for the broadcast of rank 0's measurement
  PeakTable peaks;
  std::string convention = "model-v1";
  World world;  ///< which rank of how many; data_parallel and the other sizes where known
  bool replicated = false;  ///< the source tells work that is replicated over tensor-parallel ranks
  int devices = 1;          ///< that this rank's work runs on
  std::function<DeviceMemory()> device_memory;  ///< asked on the writing thread
  std::vector<std::unique_ptr<Sink>> sinks;     ///< beside those of the options
  ModelSource model_source;  ///< stored in run.json, so that the run can be recounted
  std::function<void(const std::string&)>
      warn;  ///< one line of text, at most one of a kind; else stderr
  Clock clock;
  Dtype dtype = Dtype::fp32;      ///< that the work is done in
  std::optional<GpuRequest> gpu;  ///< the device, where it is an NVIDIA GPU
  /// Opens the counters of mode hybrid where there is no GPU; asked once, at the start.
  Result<std::unique_ptr<HardwareCounters>> (*open_counters)() = open_cpu_flop_counters;
  KnownWork
      known_work;  ///< on the device; mode hybrid calibrates its counters with it at the start
};

/// How the monitor itself is doing.
struct MonitorStatus {
  std::string disabled;  ///< why it is off; empty: it is on
  std::string directory;
  std::uint64_t steps = 0;
  std::uint64_t written = 0;  ///< records that reached the sinks
  std::uint64_t dropped = 0;
  std::uint64_t misuse = 0;  ///< calls out of order or from a second thread, ignored
  std::uint64_t failed_writes = 0;
  std::uint64_t measurements = 0;  ///< steps whose FLOPs were counted
  std::vector<std::string> notes;  ///< what was said
};

class Monitor;

/// An open step; ends with its scope.
class [[nodiscard]] StepScope {
 public:
  explicit StepScope(Monitor* monitor) : monitor_(monitor) {}
  StepScope(StepScope&& other) noexcept : monitor_(std::exchange(other.monitor_, nullptr)) {}
  StepScope& operator=(StepScope&&) = delete;
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;
  ~StepScope() { end(); }

  class PhaseScope phase(Phase phase);
  void end(const StepOutcome& outcome = {});

 private:
  Monitor* monitor_;
};

/// An open phase; ends with its scope.
class [[nodiscard]] PhaseScope {
 public:
  PhaseScope(Monitor* monitor, Phase phase) : monitor_(monitor), phase_(phase) {}
  PhaseScope(PhaseScope&& other) noexcept
      : monitor_(std::exchange(other.monitor_, nullptr)), phase_(other.phase_) {}
  PhaseScope& operator=(PhaseScope&&) = delete;
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  ~PhaseScope() { end(); }

  void end();

 private:
  Monitor* monitor_;
  Phase phase_;
};

/// One run's monitor.  Calls of one step come from one thread; another step may come from another
/// thread.  In a forked child it is off and does nothing.
class Monitor {
 public:
  /// Only wrong options are an error; a directory that cannot be written is said once and the run
  /// goes on.
  static Result<Monitor> start(const Options& options, Connections connections = {});

  Monitor(Monitor&& other) noexcept;
  Monitor& operator=(Monitor&& other) noexcept;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;
  ~Monitor();

  StepScope step(const StepInput& input = {}) {
    begin_step(input);
    return StepScope{this};
  }
  PhaseScope phase(Phase phase) {
    begin_phase(phase);
    return {this, phase};
  }

  void begin_step(const StepInput& input = {}) noexcept;
  /// Adds a micro-batch to the open step: its samples, tokens and shapes count on top.
  void micro_batch(const StepInput& input = {}) noexcept;
  void end_step(const StepOutcome& outcome = {}) noexcept;
  /// Forgets the open step: no record of it.
  void abandon_step() noexcept;

  /// Opens a phase inside the phase that is open.  Outside a step, data and other phases begin the
  /// next step early; evaluation and checkpoint become a tagged record of their own.
  void begin_phase(Phase phase) noexcept;
  void end_phase(Phase phase) noexcept;

  /// Marks the open step as one that would spoil an average.
  void tag_step(StepTag tag) noexcept;
  void set_training_phase(TrainingPhase phase) noexcept;
  /// The model does other work from now on (other trainable parameters): what was measured no
  /// longer holds.
  void model_changed() noexcept;
  /// Whether FLOPs of the open step are being counted.
  [[nodiscard]] bool measuring() const noexcept;

  /// A bounded queue of finished records for another reader; its oldest go first when nobody reads.
  std::shared_ptr<Subscription> subscribe(std::size_t capacity = 1024);
  /// Finished records reach their readers now, not within 20 ms.  Takes a lock and wakes a thread:
  /// for a logger that is about to ask, not for each step.
  void flush();
  /// Findings to be written at the end.
  void add_finding(Finding finding);

  /// Writes what is left, at most two seconds long.  Called again, it does nothing.
  void finish() noexcept;

  [[nodiscard]] bool enabled() const noexcept;
  [[nodiscard]] MonitorStatus status() const;

 private:
  class Session;
  explicit Monitor(std::shared_ptr<Session> session);
  std::shared_ptr<Session> session_;
};

inline PhaseScope StepScope::phase(Phase phase) {
  return monitor_->phase(phase);
}
inline void StepScope::end(const StepOutcome& outcome) {
  if (Monitor* monitor = std::exchange(monitor_, nullptr)) monitor->end_step(outcome);
}
inline void PhaseScope::end() {
  if (Monitor* monitor = std::exchange(monitor_, nullptr)) monitor->end_phase(phase_);
}

}  // namespace flopmeter
