// SPDX-License-Identifier: Apache-2.0
//
// Hardware: what processors tell about themselves.  Counters of FLOPs for mode hybrid, calibrated
// against known matrix products, and a GPU's own figures.
#pragma once

#include "counter_timeline.h"
#include "flop_resolver.h"
#include "slot.h"

#include <flopmeter/monitor/monitor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace flopmeter {

/// Opened before the writing thread starts, then that thread's.
class Hardware {
 public:
  using Note = std::function<void(const std::string&)>;

  Hardware(FlopResolver& resolver, MeasurePlan& plan, Note note)
      : resolver_(resolver), plan_(plan), note_(std::move(note)) {}

  /// Opens what the mode and the device ask for.  What is missing is said, and put into records.
  void open(const Options& options, const Connections& connections);
  /// Reads the counters.  Those that can no longer be read are given up.
  void poll(std::int64_t now_ns, bool wanted) noexcept;
  /// Puts into the slot what is known of its step.
  void fill(Slot& slot);

 private:
  [[nodiscard]] Result<double> open_counters(const Connections& connections);
  void give_up(const std::string& reason);

  FlopResolver& resolver_;
  MeasurePlan& plan_;
  Note note_;
  std::unique_ptr<GpuMonitor> gpu_;
  std::unique_ptr<HardwareCounters> counters_;  ///< may refer to the watch
  CounterTimeline timeline_;
  std::int64_t polled_ns_ = 0;
  bool said_gpu_ = false;
};

}  // namespace flopmeter
