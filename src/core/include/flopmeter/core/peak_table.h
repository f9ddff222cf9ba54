// SPDX-License-Identifier: Apache-2.0
//
// PeakTable: what one device can do at best, by dtype, and where each figure is from.  It is handed
// around as a value; a dtype without a figure has none, and whoever divides by it leaves the result
// empty.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// What a product of [rows, width] and [width, width] was measured to reach.
struct ShapeRate {
  Dtype dtype = Dtype::other;
  std::int64_t rows = 0, width = 0;
  FlopsPerSecond rate;
};

struct PeakTable {
  std::string device;  ///< the device's name as people say it
  std::string
      source;  ///< "catalog: <where the figure was read>", "measured", "given", "formula: …"
  std::array<std::optional<FlopsPerSecond>, dtype_count> peaks{};  ///< dense, by Dtype
  std::optional<double> memory_bytes_per_second;
  std::vector<ShapeRate> shapes;  ///< where they were measured

  [[nodiscard]] std::optional<FlopsPerSecond> peak(Dtype dtype) const {
    return peaks[static_cast<std::size_t>(dtype)];
  }
  /// What a product of [m, k] and [k, n] reaches here, from those that were measured: between them
  /// by the logarithms of rows and width, beyond them as the nearest.  Empty where there are none.
  [[nodiscard]] std::optional<FlopsPerSecond> reached(Dtype dtype,
                                                      double m,
                                                      double k,
                                                      double n) const;
  void set(Dtype dtype, FlopsPerSecond rate) { peaks[static_cast<std::size_t>(dtype)] = rate; }
};

}  // namespace flopmeter
