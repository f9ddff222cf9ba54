// SPDX-License-Identifier: Apache-2.0
//
// Hardware counters of floating-point operations. They count retired operations of all callers, so
// they measure HFU, not MFU.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace flopmeter {

/// Operations since the counters were opened, with a timestamp of the monotonic clock.
struct CounterReading {
  std::int64_t ns = 0;
  double flops = 0;
};

/// Not for the training thread, because reading is a system call. Use from one thread.
class HardwareCounters {
 public:
  HardwareCounters() = default;
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;
  HardwareCounters(HardwareCounters&&) = delete;
  HardwareCounters& operator=(HardwareCounters&&) = delete;
  virtual ~HardwareCounters() = default;

  /// Empty if this read failed.
  virtual std::optional<CounterReading> read() = 0;
  /// Waits until a reading includes all finished work, if readings are delayed.
  virtual void settle() {}
  /// Dtype of the counted operations.
  [[nodiscard]] virtual Dtype dtype() const { return Dtype::fp32; }
};

/// Counters of this process's threads through perf_event_open; an error states why there are none.
Result<std::unique_ptr<HardwareCounters>> open_cpu_flop_counters();

/// Runs work with known FLOPs, waits for its end, and returns the FLOPs.
using KnownWork = std::function<Flops()>;

/// Matmuls on the calling thread: known work for a CPU without a framework.
Flops multiply_matrices();

/// Known FLOPs divided by counted FLOPs, the median of several trials. An error if they differ by
/// more than a factor of two: the counters do not see this work.
Result<double> calibrate(HardwareCounters& counters, const KnownWork& work);

}  // namespace flopmeter
