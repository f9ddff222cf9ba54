// SPDX-License-Identifier: Apache-2.0
//
// PeakTable: the peaks of one device by dtype, with their source. A dtype without a peak is empty,
// and so are the values derived from it.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// Measured rate of a matmul of [rows, width] and [width, width].
struct ShapeRate {
  Dtype dtype = Dtype::other;
  std::int64_t rows = 0, width = 0;
  FlopsPerSecond rate;
};

struct PeakTable {
  std::string device;  ///< name of the device for display; empty: unknown
  std::string
      source;  ///< "catalog: <source of the figure>", "measured", "user", "formula: …", "none: …"
  std::array<std::optional<FlopsPerSecond>, dtype_count> peaks{};  ///< dense, by Dtype
  std::optional<double> memory_bytes_per_second;
  std::vector<ShapeRate> shapes;  ///< if measured

  [[nodiscard]] std::optional<FlopsPerSecond> peak(Dtype dtype) const {
    return peaks[static_cast<std::size_t>(dtype)];
  }
  /// Rate of a matmul of [m, k] and [k, n], from the measured shapes: interpolated by the
  /// logarithms of rows and width, outside of them the nearest. Empty if none were measured.
  [[nodiscard]] std::optional<FlopsPerSecond> reached(Dtype dtype,
                                                      double m,
                                                      double k,
                                                      double n) const;
  void set(Dtype dtype, FlopsPerSecond rate) { peaks[static_cast<std::size_t>(dtype)] = rate; }
};

}  // namespace flopmeter
