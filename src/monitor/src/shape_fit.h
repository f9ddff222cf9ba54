// SPDX-License-Identifier: Apache-2.0
//
// ShapeFit: FLOPs as a function of a batch's shape, learned from counts if no model
// configuration is known.
//
// A transformer's FLOPs are a sum of terms that each grow with one of a few quantities: tokens
// (linears), pairs of tokens (attention), sequences (heads on one position), patches and pairs of
// patches (a vision tower).  Counts of a handful of different shapes determine the coefficients;
// least squares finds them, and a count that the rest predicts well shows that they are right.
#pragma once

#include <flopmeter/core/flop_estimator.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace flopmeter {

class ShapeFit {
 public:
  static constexpr std::size_t feature_count = 7;

  /// Adds a count.  Drops the oldest if there are many.
  void add(const Batch& shape, const FlopEstimate& flops);
  /// The FLOPs of a shape; empty until the counts determine and confirm the coefficients.
  [[nodiscard]] std::optional<FlopEstimate> predict(const Batch& shape) const;
  void clear();

 private:
  using Features = std::array<long double, feature_count>;
  struct Sample {
    Features features{};
    FlopEstimate flops;
  };
  static Features features_of(const Batch& shape);
  void solve();

  std::vector<Sample> samples_;
  /// Coefficients of model, hardware (by dtype) and recompute FLOPs.
  std::array<std::optional<Features>, 2 * dtype_count + 1> coefficients_{};
  bool good_ = false;
};

}  // namespace flopmeter
