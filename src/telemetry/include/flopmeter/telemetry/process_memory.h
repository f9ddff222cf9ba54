// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace flopmeter {

/// Resident memory of a process in bytes.
struct ProcessMemory {
  std::optional<std::int64_t> rss{};
  std::optional<std::int64_t> rss_peak{};
};

/// Reads `<root>/self/status`; unreadable values are empty. Takes microseconds and three system
/// calls: not for the training thread.
ProcessMemory read_process_memory(const std::string& root = "/proc");

}  // namespace flopmeter
