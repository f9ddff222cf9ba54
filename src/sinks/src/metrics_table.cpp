// SPDX-License-Identifier: Apache-2.0
#include "metrics_table.h"

#include <flopmeter/core/text.h>

#include <array>
#include <cmath>

namespace flopmeter {
namespace {

// Widths of the FlagScale table; the MFU column follows.
constexpr auto widths = std::to_array<std::size_t>({21, 9, 13, 11, 13, 13, 11});

/// "20240129_103000" as "2024-01-29 10:30:00".
std::string stamp_text(std::string_view stamp) {
  if (stamp.size() < 15) return printable(stamp);
  std::string text;
  for (const auto& [at, count, after] :
       {std::tuple{0, 4, '-'}, {4, 2, '-'}, {6, 2, ' '}, {9, 2, ':'}, {11, 2, ':'}}) {
    text.append(stamp.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(count)))
        .push_back(after);
  }
  return printable(text.append(stamp.substr(13, 2)));
}

}  // namespace

std::string metrics_header(const RunContext& run) {
  const std::string bar(80, '=');
  std::string text = bar +
                     "\nPerformance Monitor Session Started: " + stamp_text(run.metadata.stamp) +
                     "\n" + bar + "\n";
  constexpr auto names = std::to_array<std::string_view>(
      {"Timestamp", "Step", "TFLOPS/GPU", "TFLOPS", "Samples/s", "Tokens/s", "Time(ms)"});
  for (std::size_t i = 0; i < std::size(names); ++i) append_padded(text, names[i], widths[i]);
  return text + "Memory(GB)   MFU(%)\n" + std::string(80, '-') + "\n";
}

std::string metrics_line(const IntervalRow& row) {
  std::string line;
  append_padded(line, local_time(row.last.time_unix), widths[0]);
  append_padded(line, std::to_string(row.last.step), widths[1]);
  append_padded(line, fixed_or_na(row.tflops_per_device, 2), widths[2]);
  append_padded(line, fixed_or_na(row.tflops_total, 2), widths[3]);
  append_padded(line, fixed_or_na(row.samples_per_second, 1), widths[4]);
  append_padded(line, fixed_or_na(row.tokens_per_second, 0), widths[5]);
  append_padded(line, fixed_or_na(row.step_seconds.value * 1e3, 1), widths[6]);
  append_padded(line, fixed_or_na(row.memory_gb, 2), 13);
  line.append(row.mfu ? fixed_or_na(*row.mfu * 100, 2) : "n/a").push_back('\n');
  return line;
}

}  // namespace flopmeter
