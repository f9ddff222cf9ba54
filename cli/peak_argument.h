// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace flopmeter {

/// The options that say what the work is set against: --device, --devices, --dtype, --sparse,
/// --peak.
struct PeakArgument {
  std::string device;
  std::int64_t devices = 1;
  std::string dtype = "bf16";
  bool sparse = false;
  std::string peak;

  void add_options(CLI::App& app);
  [[nodiscard]] Result<Dtype> compute_dtype() const;
  /// Empty where neither a device nor a peak is named.  A device without a figure for the dtype is
  /// an error.
  [[nodiscard]] Result<std::optional<PeakTable>> table() const;
};

}  // namespace flopmeter
