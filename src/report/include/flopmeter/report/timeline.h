// SPDX-License-Identifier: Apache-2.0
//
// Timeline: the curves of a run of any length in bounded memory.  Steps that fall together are kept
// as their mean, lowest and highest value, so that no spike is lost in a run of any length.
#pragma once

#include <flopmeter/core/step_fields.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace flopmeter {

/// Values that fell together.
struct ValueSpread {
  double sum = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::int64_t count = 0;

  void add(double value, std::int64_t times = 1);
  void add(const ValueSpread& other);
  [[nodiscard]] std::optional<double> mean() const;
};

/// Counts of positive values by size, so that quantiles of a merged bucket are known to 2 %.
class QuantileSketch {
 public:
  void add(double value, std::uint32_t times = 1);
  void add(const QuantileSketch& other);
  /// The value that this share of the values does not exceed; empty without values.
  [[nodiscard]] std::optional<double> at(double share) const;

 private:
  std::vector<std::pair<std::int16_t, std::uint32_t>> bins_;  ///< by size: logarithm and count
};

/// One bucket of steps.
struct Bucket {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t steps = 0;            ///< of the records in it
  double time_unix = 0;              ///< end of the latest step in it
  std::vector<ValueSpread> spreads;  ///< by curve
  QuantileSketch quantiles;          ///< of the step time
};

/// Takes records in any order and of any number of ranks; steps of all ranks with the same number
/// fall together.  Not thread-safe.
class Timeline {
 public:
  /// `fields` are names of step_fields(); at most `most` buckets, two at least, are kept.
  explicit Timeline(std::span<const std::string_view> fields, std::size_t most = 2000);

  void add(const StepRecord& record);

  [[nodiscard]] const std::vector<const Field*>& curves() const { return curves_; }
  /// Index of the curve that quantiles are kept of: the step time.
  [[nodiscard]] std::size_t quantile_curve() const { return quantile_curve_; }
  /// Steps that one bucket spans: a power of two.
  [[nodiscard]] std::int64_t steps_per_bucket() const { return std::int64_t{1} << shift_; }
  /// By step, without those that have no record.
  [[nodiscard]] const std::map<std::int64_t, Bucket>& buckets() const { return buckets_; }

 private:
  void coarsen();

  std::vector<const Field*> curves_;
  std::size_t quantile_curve_ = std::numeric_limits<std::size_t>::max();
  std::size_t most_;
  unsigned shift_ = 0;
  std::map<std::int64_t, Bucket> buckets_;
};

}  // namespace flopmeter
