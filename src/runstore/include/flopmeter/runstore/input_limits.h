// SPDX-License-Identifier: Apache-2.0
//
// Limits of everything that is read from a run directory, which may be damaged or hostile.
#pragma once

#include <flopmeter/core/step_fields.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace flopmeter {

struct InputLimits {
  static constexpr std::size_t metadata_bytes = 1 << 20;
  static constexpr std::size_t record_line_bytes = 1 << 20;
  static constexpr std::size_t profile_line_bytes = 4 << 20;
  static constexpr std::int64_t skipped_bytes = 64 << 20;  ///< without a line; the rest is not read
  static constexpr std::size_t profiles_per_rank = 1000;
  static constexpr std::size_t profile_rows = 10'000;
  static constexpr std::size_t profile_rows_per_rank = 200'000;  ///< in the newest profiles
  static constexpr std::size_t shape_rates = 10'000;
  static constexpr std::size_t depth = 64;           ///< of JSON
  static constexpr std::size_t files = 1 << 20;      ///< in a directory
  static constexpr int highest_rank = 10'000'000;    ///< in a file name
  static constexpr int highest_count = 100'000'000;  ///< of ranks, devices, processors

  /// Whether a run can have this value: a record with another one is damaged.
  static constexpr bool is_plausible(Unit unit, double value) {
    constexpr double century = 3e9;
    switch (unit) {
      case Unit::none:
        return true;
      case Unit::count:
        return value > -1e15 && value < 1e15;
      case Unit::ratio:
        return value > -1e6 && value < 1e6;
      case Unit::seconds:
        return value >= 0 && value < century;
      case Unit::unix_time:
        return value >= 0 && value < 1e12;
      case Unit::flops:
      case Unit::teraflops_per_second:
      case Unit::per_second:
        return value >= 0 && value < 1e30;
      case Unit::bytes:
        return value >= 0 && value < 1e18;
      case Unit::watts:
      case Unit::hertz:
        return value >= 0 && value < 1e15;
    }
    return false;
  }

  /// The world size that a file claims, or the number of ranks with files if the claim is too high:
  /// a claim alone must not allocate memory.
  static constexpr int world_size(int claimed, std::size_t ranks_with_files) {
    constexpr std::size_t believed = 100'000;
    const std::size_t most = std::max(believed, 100 * ranks_with_files);
    const bool is_plausible = claimed > 0 && static_cast<std::size_t>(claimed) <= most;
    return is_plausible ? claimed : std::max(1, static_cast<int>(ranks_with_files));
  }
};

}  // namespace flopmeter
