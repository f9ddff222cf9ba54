// SPDX-License-Identifier: Apache-2.0
//
// What an NVIDIA GPU tells about itself through NVML, GPM and DCGM.  The libraries are opened by
// name when asked for, never linked.  A driver may hang: it is asked on a thread of its own, and
// given up when it does not answer.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/telemetry/hardware_counters.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace flopmeter {

/// One reading; what the GPU does not tell is empty.  Shares are 0 to 1.
struct GpuReading {
  std::optional<double> utilization;  ///< share of the last moments in which any kernel ran
  std::optional<double> power_watts;
  std::optional<double> sm_clock_hertz;
  std::optional<double> memory_clock_hertz;
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML's bits of clocks event reasons
  std::optional<std::int64_t> memory_used_bytes;
  std::optional<std::int64_t> memory_total_bytes;
  std::optional<double> sm_active;      ///< share of SM cycles with a warp; this and the rest by
  std::optional<double> tensor_active;  ///< GPM or DCGM: shares of what each unit can do at best,
  std::optional<double> fp64_active;    ///< since the reading before
  std::optional<double> fp32_active;
  std::optional<double> fp16_active;
  std::optional<double> dram_active;
};

struct GpuRequest {
  std::string uuid;       ///< "GPU-…" as CUDA and NVML have it; empty: the first one
  bool activity = false;  ///< the units' activity too, by GPM, else by DCGM
  std::string nvml = "libnvidia-ml.so.1";
  std::string dcgm = "libdcgm.so.4";
  std::chrono::milliseconds interval{100};   ///< between two readings; GPM needs 100 ms
  std::chrono::milliseconds patience{5000};  ///< longer than this without an answer: given up
};

/// Asks a GPU again and again while it lives.  Its members may be called from any thread and never
/// wait for the driver.
class GpuMonitor {
 public:
  /// Starts the thread, which opens the libraries; what fails is told by why_not().
  explicit GpuMonitor(const GpuRequest& request);
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;
  GpuMonitor(GpuMonitor&&) = delete;
  GpuMonitor& operator=(GpuMonitor&&) = delete;
  /// A thread that hangs in the driver is left behind.
  ~GpuMonitor();

  /// The newest reading; empty before the first one and when the driver has not answered lately.
  [[nodiscard]] std::optional<GpuReading> latest() const;
  /// Why there are no readings, or no activity where it was asked for; empty while all is well.
  [[nodiscard]] std::string why_not() const;
  /// Waits for `more` readings from now on; false when time runs out or none will come.
  [[nodiscard]] bool wait(int more, std::chrono::milliseconds timeout) const;
  /// Seconds at full activity of the tensor, fp64 or fp32 units that add up to what was seen, and
  /// when it was seen last; empty without activity.
  struct Busy {
    std::int64_t ns = 0;  ///< monotonic
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

/// FLOPs from the activity of the units that compute in `dtype`: activity times `peak`.  The watch
/// must outlive the counters.  An error where the GPU does not tell the activity.
Result<std::unique_ptr<HardwareCounters>> open_gpu_flop_counters(const GpuMonitor& watch,
                                                             Dtype dtype,
                                                             std::optional<FlopsPerSecond> peak);

}  // namespace flopmeter
