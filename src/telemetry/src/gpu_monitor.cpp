// SPDX-License-Identifier: Apache-2.0
#include "dcgm_gpu.h"
#include "nvml_gpu.h"

#include <flopmeter/telemetry/clock.h>
#include <flopmeter/telemetry/gpu_monitor.h>

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

namespace flopmeter {

/// Shared with the thread, which may outlive the monitor if a driver call does not return.
struct GpuMonitor::State {
  GpuRequest request;
  std::mutex mutex;  ///< not held during driver calls
  std::condition_variable changed;
  bool stopping = false;
  bool ended = false;
  std::int64_t answered_ns = 0;
  int readings = 0;
  GpuReading latest;
  std::string problem;           ///< why there are no readings
  std::string activity_problem;  ///< why there is no activity
  std::optional<Busy> busy;

  [[nodiscard]] bool late() const {
    const auto patience = std::chrono::nanoseconds{request.patience}.count();
    return !ended && monotonic_nanoseconds() - answered_ns > patience;
  }
  void publish(const GpuReading& reading, std::int64_t now) {
    if (reading.tensor_active || reading.fp32_active || reading.fp64_active) {
      // The activity covers the time since the previous reading.
      const double seconds =
          busy ? static_cast<double>(now - busy->ns) / 1e9 : 0;  // starts with the first reading
      Busy sum = busy.value_or(Busy{});
      sum.ns = now;
      sum.tensor += seconds * reading.tensor_active.value_or(0);
      sum.fp64 += seconds * reading.fp64_active.value_or(0);
      sum.fp32 += seconds * reading.fp32_active.value_or(0);
      busy = sum;
    }
    latest = reading;
    ++readings;
  }
};

GpuMonitor::GpuMonitor(const GpuRequest& request) : state_(std::make_shared<State>()) {
  state_->request = request;
  state_->answered_ns = monotonic_nanoseconds();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the thread
  try {
    std::thread{[state = state_] { run(*state); }}.detach();
  } catch (const std::exception&) {
    state_->ended = true;
    state_->problem = "cannot start a thread";
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

GpuMonitor::~GpuMonitor() {
  std::unique_lock lock{state_->mutex};
  state_->stopping = true;
  state_->changed.notify_all();
  // A thread outside the driver ends immediately; a hanging one keeps the state alive.
  state_->changed.wait_for(lock, std::chrono::milliseconds{200}, [this] { return state_->ended; });
}

void GpuMonitor::run(State& state) noexcept {
  pthread_setname_np(pthread_self(), "flopmeter-gpu");
  const GpuRequest& request = state.request;
  std::string problem;
  try {
    auto nvml = NvmlGpu::open(request);
    std::optional<DcgmGpu> dcgm;
    if (!nvml) {
      problem = nvml.error().message;
    } else if (request.activity) {
      if (const auto gpm = nvml->open_gpm(); !gpm) {
        auto opened = DcgmGpu::open(request);
        if (opened) {
          dcgm = *std::move(opened);
        } else {
          const std::lock_guard lock{state.mutex};
          state.activity_problem = gpm.error().message + "; " + opened.error().message;
        }
      }
    }
    while (problem.empty()) {
      GpuReading reading;
      const auto read = nvml->read(reading);
      if (dcgm) dcgm->read(reading);
      std::unique_lock lock{state.mutex};
      state.answered_ns = monotonic_nanoseconds();
      state.problem = read ? std::string{} : read.error().message;
      if (read) state.publish(reading, state.answered_ns);
      state.changed.notify_all();
      if (state.changed.wait_for(lock, request.interval, [&] { return state.stopping; })) break;
    }
    if (dcgm) dcgm->close();
    if (nvml) nvml->close();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const std::lock_guard lock{state.mutex};
  if (!problem.empty()) state.problem = problem;
  state.ended = true;
  state.changed.notify_all();
}

std::optional<GpuReading> GpuMonitor::latest() const {
  const std::lock_guard lock{state_->mutex};
  if (state_->readings == 0 || !state_->problem.empty() || state_->late()) return std::nullopt;
  return state_->latest;
}

std::string GpuMonitor::why_not() const {
  const std::lock_guard lock{state_->mutex};
  if (!state_->problem.empty()) return state_->problem;
  if (state_->late()) {
    return "the GPU's driver did not answer for " +
           std::to_string(
               std::chrono::duration_cast<std::chrono::seconds>(state_->request.patience).count()) +
           " s";
  }
  return state_->activity_problem;
}

bool GpuMonitor::wait(int more, std::chrono::milliseconds timeout) const {
  std::unique_lock lock{state_->mutex};
  const int wanted = state_->readings + more;
  state_->changed.wait_for(
      lock, timeout, [&] { return state_->ended || state_->readings >= wanted; });
  return state_->readings >= wanted;
}

std::optional<GpuMonitor::Busy> GpuMonitor::busy() const {
  const std::lock_guard lock{state_->mutex};
  if (!state_->problem.empty() || state_->late()) return std::nullopt;
  return state_->busy;
}

namespace {

using Share = double GpuMonitor::Busy::*;

/// Units that compute in a dtype: fp32 and fp64 have separate units, other dtypes use tensor cores.
Share units_of(Dtype dtype) {
  if (dtype == Dtype::fp32) return &GpuMonitor::Busy::fp32;
  if (dtype == Dtype::fp64) return &GpuMonitor::Busy::fp64;
  return &GpuMonitor::Busy::tensor;
}

class GpuFlopCounters final : public HardwareCounters {
 public:
  GpuFlopCounters(const GpuMonitor& monitor, Dtype dtype, FlopsPerSecond peak)
      : monitor_(monitor), dtype_(dtype), peak_(peak) {}

  std::optional<CounterReading> read() override {
    const auto busy = monitor_.busy();
    if (!busy) return std::nullopt;
    return CounterReading{.ns = busy->ns, .flops = (*busy).*units_of(dtype_) * peak_.value};
  }
  void settle() override { static_cast<void>(monitor_.wait(2, std::chrono::seconds{1})); }
  [[nodiscard]] Dtype dtype() const override { return dtype_; }

 private:
  const GpuMonitor& monitor_;
  Dtype dtype_;
  FlopsPerSecond peak_;
};

}  // namespace

Result<std::unique_ptr<HardwareCounters>> open_gpu_flop_counters(
    const GpuMonitor& monitor, Dtype dtype, std::optional<FlopsPerSecond> peak) {
  constexpr std::chrono::milliseconds first_reading{2000};
  const std::string none = "no hardware counters: ";
  if (!peak) {
    return Error{ErrorCode::unsupported,
                 none + "the GPU's peak in " + std::string{to_string(dtype)} + " is unknown"};
  }
  if (!monitor.busy() && monitor.why_not().empty() && !monitor.wait(2, first_reading) &&
      monitor.why_not().empty())
    return Error{ErrorCode::unsupported, none + "the GPU's driver did not answer"};
  if (!monitor.busy()) {
    const std::string reason = monitor.why_not();
    return Error{ErrorCode::unsupported,
                 none + (reason.empty() ? "the GPU does not report its activity" : reason)};
  }
  return std::unique_ptr<HardwareCounters>{
      std::make_unique<GpuFlopCounters>(monitor, dtype, *peak)};
}

}  // namespace flopmeter
