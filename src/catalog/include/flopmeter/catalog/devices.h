// SPDX-License-Identifier: Apache-2.0
//
// The devices we know: what each can do at best, by dtype, and where the figure was read.  The
// table is catalog/devices.csv, embedded; a file of the user's own has the same form.  A name is
// matched word by word, never inside another one, and a name that is not there is an error, never a
// guess.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/units.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// One row of the table; all rates are of one `unit`.
struct Device {
  std::string name;                  ///< as people say it: "H100 SXM5 80GB"
  std::string vendor;                ///< empty where a user's file does not say
  std::string unit;                  ///< what one device is: "GPU", "GCD", "chip"
  std::vector<std::string> aliases;  ///< what drivers report and people type
  std::array<std::optional<FlopsPerSecond>, dtype_count> dense{};  ///< by Dtype
  std::array<bool, dtype_count> sparse_doubles{};  ///< by Dtype: 2:4 sparsity doubles the rate
  std::optional<Bytes> memory;
  std::optional<double> memory_bytes_per_second;
  std::string source;  ///< where the figures were read; never empty
  std::string note;
};

/// The embedded table, in the order of the file.
std::span<const Device> devices();

/// Reads a table in the form of catalog/devices.csv; an error names the line.
Result<std::vector<Device>> parse_devices(std::string_view text);

/// The device that a driver ("NVIDIA A100-SXM4-80GB") or a person ("a100") means by `name`.  Case,
/// punctuation and the maker's name do not matter, every other word must be one of the device's
/// own.  A short name that fits several rows is the first of them if their peaks are equal, and
/// otherwise an error that lists them.
Result<const Device*> find_device(std::string_view name, std::span<const Device> among = devices());

/// The peaks of one unit.  `sparse` doubles the rates that 2:4 sparsity doubles on this device; the
/// source text says which of the two the figures are.
PeakTable peaks_of(const Device& device, bool sparse = false);

}  // namespace flopmeter
