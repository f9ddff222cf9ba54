// SPDX-License-Identifier: Apache-2.0
//
// Hardware counters of floating-point operations.  They count what the units retired, whoever asked
// for it: a hardware figure, never a model's.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace flopmeter {

/// Operations since the counters were opened, at a moment of the monotonic clock.
struct CounterReading {
  std::int64_t ns = 0;
  double flops = 0;
};

/// Read by one thread, which is not the training thread: reading enters the kernel.
class HardwareCounters {
 public:
  HardwareCounters() = default;
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;
  HardwareCounters(HardwareCounters&&) = delete;
  HardwareCounters& operator=(HardwareCounters&&) = delete;
  virtual ~HardwareCounters() = default;

  /// Empty when they could not be read this time.
  virtual std::optional<CounterReading> read() = 0;
  /// Waits until a reading holds all work that has ended, where readings come late.
  virtual void settle() {}
  /// What the operations count as.
  [[nodiscard]] virtual Dtype dtype() const { return Dtype::fp32; }
};

/// The counters of this process' threads on the CPU through perf_event_open; else why there are
/// none.
Result<std::unique_ptr<HardwareCounters>> open_cpu_flop_counters();

/// Work whose FLOPs are known: does it, waits for its end and returns them.
using KnownWork = std::function<Flops()>;

/// Matrix products on the calling thread: known work for a CPU where no framework offers any.
Flops multiply_matrices();

/// Known FLOPs over those that the counters saw, the median of a few trials.  An error where they
/// differ by more than a factor of two: such counters do not see this work.
Result<double> calibrate(HardwareCounters& counters, const KnownWork& work);

}  // namespace flopmeter
