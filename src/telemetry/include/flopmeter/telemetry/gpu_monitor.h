// SPDX-License-Identifier: Apache-2.0
//
// Telemetry of an NVIDIA GPU through NVML, GPM, and DCGM. The libraries are loaded at run time. A
// separate thread calls the driver, because a call may hang; it then gives up.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/telemetry/hardware_counters.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace flopmeter {

/// One reading; unavailable values are empty. Shares are 0 to 1.
struct GpuReading {
  std::optional<double> utilization;  ///< share of the last sampling period in which a kernel ran
  std::optional<double> power_watts;
  std::optional<double> sm_clock_hertz;
  std::optional<double> memory_clock_hertz;
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML bits of clocks event reasons
  std::optional<std::int64_t> memory_used_bytes;
  std::optional<double> sm_active;      ///< share of SM cycles with a warp. This and the
  std::optional<double> tensor_active;  ///< following are by GPM or DCGM: shares of the
  std::optional<double> fp64_active;    ///< maximum since the previous reading
  std::optional<double> fp32_active;
  std::optional<double> fp16_active;
  std::optional<double> dram_active;
};

struct GpuRequest {
  std::string uuid;       ///< "GPU-…" as in CUDA and NVML; empty: the first GPU
  bool activity = false;  ///< also read unit activity, by GPM, else by DCGM
  std::string nvml = "libnvidia-ml.so.1";
  std::string dcgm = "libdcgm.so.4";
  std::chrono::milliseconds interval{100};   ///< between readings; GPM needs 100 ms
  std::chrono::milliseconds patience{5000};  ///< give up after this time without an answer
};

/// Polls a GPU in a thread. Members are thread-safe and never wait for the driver.
class GpuMonitor {
 public:
  /// Starts the thread, which loads the libraries; why_not() returns failures.
  explicit GpuMonitor(const GpuRequest& request);
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;
  GpuMonitor(GpuMonitor&&) = delete;
  GpuMonitor& operator=(GpuMonitor&&) = delete;
  /// Leaves a thread that hangs in the driver behind.
  ~GpuMonitor();

  /// The latest reading; empty before the first one and if the driver stopped answering.
  [[nodiscard]] std::optional<GpuReading> latest() const;
  /// Why there are no readings, or no requested activity; empty if everything works.
  [[nodiscard]] std::string why_not() const;
  /// Waits for `more` readings; false on timeout or if none will come.
  [[nodiscard]] bool wait(int more, std::chrono::milliseconds timeout) const;
  /// Accumulated seconds at full activity of the tensor, fp64, and fp32 units, and the time of the
  /// last reading; empty without activity.
  struct Busy {
    std::int64_t ns = 0;  ///< monotonic clock
    double tensor = 0;
    double fp64 = 0;
    double fp32 = 0;
  };
  [[nodiscard]] std::optional<Busy> busy() const;

 private:
  struct State;
  static void run(State& state) noexcept;
  std::shared_ptr<State> state_;
};

/// FLOPs from the activity of the units that compute in `dtype`: activity times `peak`. The monitor
/// must outlive the counters. An error if the GPU does not report the activity.
Result<std::unique_ptr<HardwareCounters>> open_gpu_flop_counters(
    const GpuMonitor& monitor, Dtype dtype, std::optional<FlopsPerSecond> peak);

}  // namespace flopmeter
