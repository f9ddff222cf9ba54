// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.h"

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// The options of the peak: --device, --devices, --dtype, --sparse, --peak.
struct PeakArgument {
  std::string device;
  std::int64_t devices = 1;
  std::string dtype = "bf16";
  bool sparse = false;
  std::string peak;
  bool any_dtype = false;  ///< a device need not have a peak for `dtype`

  void add_options(Arguments& app);
  [[nodiscard]] Result<Dtype> compute_dtype() const;
  /// Empty if neither a device nor a peak is set.  A device without a peak for the dtype is an
  /// error, unless any will do.
  [[nodiscard]] Result<std::optional<PeakTable>> table() const;
};

}  // namespace flopmeter
