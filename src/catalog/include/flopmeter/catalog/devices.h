// SPDX-License-Identifier: Apache-2.0
//
// Known devices: their dense peaks per dtype, with sources.  The table is src/catalog/devices.csv,
// embedded; a user's file has the same form.  Names are matched by whole words.  An unknown name is
// an error, never a guess.
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
  std::string name;                  ///< common name: "H100 SXM5 80GB"
  std::string vendor;                ///< may be empty in a user's file
  std::string unit;                  ///< kind of one device: "GPU", "GCD", "chip"
  std::vector<std::string> aliases;  ///< names that drivers report and users type
  std::array<std::optional<FlopsPerSecond>, dtype_count> dense{};  ///< by Dtype
  /// By Dtype: highest matmul rate that was measured and published; below the peak.
  std::array<std::optional<FlopsPerSecond>, dtype_count> achievable{};
  std::array<bool, dtype_count> sparse_doubles{};  ///< by Dtype: 2:4 sparsity doubles the peak
  std::optional<Bytes> memory;
  std::optional<double> memory_bytes_per_second;
  std::string source;  ///< source of the peaks; never empty
  std::string note;
};

/// The embedded table, in the order of the file.
std::span<const Device> devices();

/// Reads a table in the form of src/catalog/devices.csv; an error names the line.
Result<std::vector<Device>> parse_devices(std::string_view text);

/// Device by the name that a driver reports ("NVIDIA A100-SXM4-80GB") or a user types ("a100").
/// Case, punctuation, and the vendor are ignored; every other word must belong to the device.  If a
/// short name matches several rows, the result is the first if their peaks are equal, else an error
/// that lists them.
Result<const Device*> find_device(std::string_view name, std::span<const Device> among = devices());

/// Peaks of one unit.  `sparse` doubles the peaks that 2:4 sparsity doubles on this device; the
/// source text states which of the two applies.
PeakTable peaks_of(const Device& device, bool sparse = false);

}  // namespace flopmeter
