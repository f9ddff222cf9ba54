// SPDX-License-Identifier: Apache-2.0
//
// PeakTable: what one device can do at best, by dtype, and where each figure is from.  It is handed
// around as a value; a dtype without a figure has none, and whoever divides by it leaves the result
// empty.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/units.h>

#include <array>
#include <optional>
#include <string>

namespace flopmeter {

struct PeakTable {
  std::string device;  ///< the device's name as people say it
  std::string
      source;  ///< "catalog: <where the figure was read>", "measured", "given", "formula: …"
  std::array<std::optional<FlopsPerSecond>, dtype_count> peaks{};  ///< dense, by Dtype
  std::optional<double> memory_bytes_per_second;

  [[nodiscard]] std::optional<FlopsPerSecond> peak(Dtype dtype) const {
    return peaks[static_cast<std::size_t>(dtype)];
  }
  void set(Dtype dtype, FlopsPerSecond rate) { peaks[static_cast<std::size_t>(dtype)] = rate; }
};

}  // namespace flopmeter
