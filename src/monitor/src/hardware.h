// SPDX-License-Identifier: Apache-2.0
//
// Hardware: FLOP counters of the processor for mode hybrid, calibrated against known matmuls, and
// the telemetry of a GPU.
#pragma once

#include "counter_timeline.h"
#include "flop_resolver.h"
#include "slot.h"

#include <flopmeter/monitor/monitor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace flopmeter {

/// Opened before the writer thread starts; then used by that thread only.
class Hardware {
 public:
  using Note = std::function<void(const std::string&)>;

  Hardware(FlopResolver& resolver, MeasurePlan& plan, Note note)
      : resolver_(resolver), plan_(plan), note_(std::move(note)) {}

  /// Opens the counters for the mode and the device.  Reports missing ones, also in records.
  void open(const Options& options, const Connections& connections);
  /// Reads the counters.  Closes those that fail.
  void poll(std::int64_t now_ns, bool wanted) noexcept;
  /// Adds the readings of the step to its slot.
  void fill(Slot& slot);

 private:
  [[nodiscard]] Result<double> open_counters(const Connections& connections);
  void give_up(const std::string& reason);

  FlopResolver& resolver_;
  MeasurePlan& plan_;
  Note note_;
  std::unique_ptr<GpuMonitor> gpu_;
  std::unique_ptr<HardwareCounters> counters_;  ///< may refer to the GPU monitor
  CounterTimeline timeline_;
  std::int64_t polled_ns_ = 0;
  bool logged_gpu_ = false;
};

}  // namespace flopmeter
