// SPDX-License-Identifier: Apache-2.0
//
// Hardware counters of floating-point operations.  They count what the units retired, whoever asked
// for it: a hardware figure, never a model's.
#pragma once

#include <flopmeter/core/result.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace flopmeter {

/// Read by one thread, which is not the training thread: reading enters the kernel.
class FlopCounters {
 public:
  FlopCounters() = default;
  FlopCounters(const FlopCounters&) = delete;
  FlopCounters& operator=(const FlopCounters&) = delete;
  FlopCounters(FlopCounters&&) = delete;
  FlopCounters& operator=(FlopCounters&&) = delete;
  virtual ~FlopCounters() = default;

  /// Operations since the counters were opened; empty when they could not be read this time.
  virtual std::optional<double> total() = 0;
};

/// The counters of this process' threads on the CPU through perf_event_open; else why there are
/// none.
Result<std::unique_ptr<FlopCounters>> open_cpu_flop_counters();

}  // namespace flopmeter
