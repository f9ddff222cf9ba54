// SPDX-License-Identifier: Apache-2.0
//
// Utilization: the only place where MFU and HFU are formed.
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/step_record.h>

#include <optional>

namespace flopmeter {

/// Turns FLOPs by dtype and a time into utilization against one device's peaks.
class Utilization {
 public:
  explicit Utilization(PeakTable peaks) : peaks_(std::move(peaks)) {}

  [[nodiscard]] const PeakTable& peaks() const { return peaks_; }

  /// The least time one device needs for this work, sum over dtypes of FLOPs / peak; empty where a
  /// dtype that did work has no peak.
  [[nodiscard]] std::optional<Seconds> ideal_time(
      std::span<const WideInt, dtype_count> flops) const;

  /// ideal time / (time x devices).  Empty without a peak or without time.  Never clamped: a value
  /// above 1 says that the peak or the FLOPs are wrong.
  [[nodiscard]] std::optional<double> utilization(std::span<const WideInt, dtype_count> flops,
                                                  Seconds time,
                                                  int devices) const;

  /// Fills mfu and hfu from the record's FLOPs, time and devices.
  void finish(StepRecord& record) const;

  /// The first dtype that did work and has no peak: the reason for an empty MFU.
  [[nodiscard]] std::optional<Dtype> missing_peak(
      std::span<const WideInt, dtype_count> flops) const;

 private:
  PeakTable peaks_;
};

}  // namespace flopmeter
