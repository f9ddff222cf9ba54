// SPDX-License-Identifier: Apache-2.0
//
// Utilization: the MFU and HFU of one step.
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/step_record.h>

#include <optional>
#include <span>
#include <utility>

namespace flopmeter {

/// Computes utilization from FLOPs by dtype, time, and the peaks of a device.
class Utilization {
 public:
  explicit Utilization(PeakTable peaks) : peaks_(std::move(peaks)) {}

  [[nodiscard]] const PeakTable& peaks() const { return peaks_; }

  /// The ideal time of the FLOPs on one device: the sum over dtypes of FLOPs / peak.  Empty if a
  /// dtype with FLOPs has no peak.
  [[nodiscard]] std::optional<Seconds> ideal_time(
      std::span<const WideInt, dtype_count> flops) const;

  /// ideal time / (time x devices).  Empty without a peak or without time.  Never clamped: a value
  /// above 1 means that the peak or the FLOPs are wrong.
  [[nodiscard]] std::optional<double> utilization(std::span<const WideInt, dtype_count> flops,
                                                  Seconds time,
                                                  int devices) const;

  /// Sets ideal_seconds, mfu, and hfu from the FLOPs, time, and devices of the record.  Without a
  /// known time source mfu and hfu stay empty.
  void finish(StepRecord& record) const;

  /// The first dtype with FLOPs but without a peak: the reason for an empty MFU.
  [[nodiscard]] std::optional<Dtype> missing_peak(
      std::span<const WideInt, dtype_count> flops) const;

 private:
  PeakTable peaks_;
};

}  // namespace flopmeter
