// SPDX-License-Identifier: Apache-2.0
//
// Monitor: measures a training loop.  The loop marks its steps, or hooks report events; finished
// records pass through a fixed ring to one background thread, which computes MFU and writes them.
// After start() no call throws, blocks, allocates, or enters the kernel on the caller's thread.
#pragma once

#include <flopmeter/core/device_clock.h>
#include <flopmeter/core/exchange.h>
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/world.h>
#include <flopmeter/monitor/options.h>
#include <flopmeter/monitor/step_events.h>
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
#include <string_view>
#include <utility>
#include <vector>

namespace flopmeter {

/// Memory of the device as an allocator sees it, in bytes.
struct DeviceMemory {
  std::optional<std::int64_t> current{}, peak{}, reserved{};
};

/// The source of the model FLOPs of a step.
enum class ModelFlops : std::uint8_t {
  count,      ///< the op stream; the estimate if there is no count
  estimate,   ///< the estimate; the count states the hardware FLOPs
  framework,  ///< StepInput::flops; the count states the hardware FLOPs
};

/// Records the step that Options::kineto_step names with the profiler of the framework.  Called on
/// the training thread.
class StepTracer {
 public:
  /// False if the step cannot be recorded: the next one is tried.
  virtual bool begin(std::int64_t step) noexcept = 0;
  /// Stores the trace, unless the step has no record.
  virtual void end(bool keep) noexcept = 0;

 protected:
  ~StepTracer() = default;
};

/// The parts that a monitor works with.  Everything pointed at must outlive the monitor.
struct Connections {
  FlopCounter* source = nullptr;        ///< counts; none: no counting
  FlopEstimator* estimator = nullptr;   ///< estimates; none: no estimate
  DeviceClock* device_clock = nullptr;  ///< of an asynchronous device; none: host clocks
  Exchange* exchange = nullptr;         ///< for the broadcast of rank 0's measurement
  StepTracer* tracer = nullptr;         ///< none: no step is traced
  PeakTable peaks;
  std::string convention = "model-v1";
  ModelFlops model_flops = ModelFlops::count;
  World world;              ///< rank, number of ranks, and the parallel sizes that are known
  bool replicated = false;  ///< the source reports work that tensor-parallel ranks repeat
  int devices = 1;          ///< number of devices that this rank uses
  std::function<DeviceMemory()> device_memory;  ///< called on the writing thread
  std::vector<std::unique_ptr<Sink>> sinks;     ///< in addition to those of the options
  ModelSource model_source;  ///< stored in run.json, so that the run can be recounted
  std::function<void(const std::string&)>
      warn;  ///< gets one line of text, each kind at most once; default: stderr
  Clock clock;
  Dtype dtype = Dtype::fp32;      ///< of the computation
  std::optional<GpuRequest> gpu;  ///< the device, if it is an NVIDIA GPU
  /// Opens the counters of mode hybrid if there is no GPU; called once, at the start.
  Result<std::unique_ptr<HardwareCounters>> (*open_counters)() = open_cpu_flop_counters;
  KnownWork
      known_work;  ///< on the device; mode hybrid calibrates its counters with it at the start
  StepPolicy policy = StepPolicy::explicit_marks;
  bool reports_forward = true;  ///< hooks report the forward passes of the model
};

/// The state of the monitor itself.
struct MonitorStatus {
  std::string disabled;  ///< why it is off; empty: it is on
  std::string directory;
  std::string trace;  ///< file for the step that a StepTracer records
  std::uint64_t steps = 0;
  std::uint64_t written = 0;  ///< records that reached the sinks
  std::uint64_t dropped = 0;
  std::uint64_t misuse = 0;  ///< calls out of order or from a second thread, ignored
  std::uint64_t events = 0;  ///< reports of hooks and integrations
  std::uint64_t failed_writes = 0;
  std::uint64_t measurements = 0;  ///< steps whose FLOPs were counted
  std::vector<std::string> notes;  ///< lines that were logged
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

/// The monitor of one run.  Calls of one step come from one thread; another step may come from
/// another thread.  In a forked child it is off and does nothing.
class Monitor {
 public:
  /// Only wrong options are an error; a directory that cannot be written is logged once and the run
  /// continues.
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

  /// Reports an event of a hook, a loader, or an integration.
  StepReply on(const StepEvent& event) noexcept;
  /// Whether forward_end should state how the backward pass will be reported.
  [[nodiscard]] bool expects_backward(const StepEvent& event) const noexcept;

  void begin_step(const StepInput& input = {}) noexcept;
  /// As begin_step(), for a loop that marks only where steps begin: the next mark ends the step.
  void mark_step(const StepInput& input = {}) noexcept;
  /// The step that mark_step() opened ends with end_step(), not with the next mark.
  void keep_step() noexcept;
  /// Adds the samples, tokens, and shapes of a micro-batch to the open step.
  void micro_batch(const StepInput& input = {}) noexcept;
  void end_step(const StepOutcome& outcome = {}) noexcept;
  /// Discards the open step: no record of it.
  void abandon_step() noexcept;
  /// Values for the record of the open step, or of the next one.
  void log(const StepOutcome& outcome) noexcept;

  /// Opens a phase inside the phase that is open.  Outside a step, evaluation, checkpoint, and
  /// generation become a separate tagged record; other phases are part of the next step.
  void begin_phase(Phase phase) noexcept;
  void end_phase(Phase phase) noexcept;

  /// Names the part of the run that following steps belong to; empty: none.  Returns the name
  /// before.
  std::string_view set_stage(std::string_view stage);
  /// The model is trained in evaluation mode: its forward passes with gradients are training.
  void set_frozen_mode(bool frozen) noexcept;
  /// Batches were fetched from a loader before the monitor started.
  void set_loader_seen() noexcept;
  /// The loop is known to train without an optimizer that hooks report.
  void expect_no_optimizer() noexcept;
  void set_training_phase(TrainingPhase phase) noexcept;
  /// The work of the model changes now, for example because other parameters are trained:
  /// measurements so far are not valid for it.
  void model_changed() noexcept;
  /// Whether FLOPs of the open step are being counted.
  [[nodiscard]] bool measuring() const noexcept;

  /// A bounded queue of finished records for another reader; it drops the oldest if it is full.
  std::shared_ptr<Subscription> subscribe(std::size_t capacity = 1024);
  /// Passes finished records to their readers now, not within 20 ms.  Takes a lock and wakes a
  /// thread: for a logger that is about to read, not for each step.
  void flush();
  /// Adds a finding to the ones that are written at the end.
  void add_finding(Finding finding);

  /// Writes the remaining records, in at most two seconds.  Further calls do nothing.
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
