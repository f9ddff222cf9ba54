// SPDX-License-Identifier: Apache-2.0
//
// Shared by the monitor's tests: a temporary directory, a manual clock, and a reader of records.
#pragma once

#include "../../../tests/support/files.h"

#include <flopmeter/monitor/monitor.h>

#include <nlohmann/json.hpp>

#include <atomic>
#include <string>
#include <vector>

namespace flopmeter {

using Json = nlohmann::json;

inline std::vector<Json> parse_lines(const std::string& text) {
  std::vector<Json> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    lines.push_back(Json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

/// Records of the n-th start in the directory, oldest first.
inline std::vector<Json> read_records(const TemporaryDirectory& directory, std::size_t start = 0) {
  auto files = directory.names("records_");
  std::erase_if(files, [](const std::string& name) { return !name.ends_with(".jsonl"); });
  return start < files.size() ? parse_lines(read_file(directory.path() + "/" + files[start]))
                              : std::vector<Json>{};
}

/// perf_summary of the only start in the directory.
inline Json read_summary(const TemporaryDirectory& directory) {
  return Json::parse(read_file(directory.path() + "/" + directory.names("perf_summary_").at(0)));
}

inline Options without_console(const TemporaryDirectory& directory) {
  Options options;
  options.directory = directory.path();
  options.console = false;
  return options;
}

/// Stands still until it is advanced.
struct HandClock {
  static inline std::atomic<std::int64_t> now_ns{1'000};
  static inline std::atomic<std::int64_t> unix_base{0};
  static void reset(std::int64_t unix_ns = 1'700'000'000'000'000'000) {
    now_ns = 1'000;
    unix_base = unix_ns;
  }
  static void advance(std::int64_t ns) { now_ns += ns; }
  static Clock clock() {
    return {.monotonic = []() noexcept { return now_ns.load(); },
            .unix_time = []() noexcept { return unix_base.load() + now_ns.load() - 1'000; }};
  }
};

/// Connections to a HandClock that starts at `unix_ns`.
inline Connections on_hand_clock(std::int64_t unix_ns = 1'700'000'000'000'000'000) {
  HandClock::reset(unix_ns);
  Connections connections;
  connections.clock = HandClock::clock();
  return connections;
}

}  // namespace flopmeter
