// SPDX-License-Identifier: Apache-2.0
//
// IntervalRows: steps gathered into one row a log interval, as the text table, the summary, the
// console and TensorBoard show them.
#pragma once

#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_totals.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace flopmeter {

/// Means over the train steps of one log interval; amounts a second are sums over sums.
struct IntervalRow {
  StepRecord last;  ///< the interval's last train step
  int steps = 0;
  Seconds step_seconds;
  std::optional<double> tflops_per_device;
  std::optional<double> tflops_total;        ///< of all ranks; empty where this one's do not tell
  std::optional<double> samples_per_second;  ///< of all ranks
  std::optional<double> tokens_per_second;   ///< of all ranks
  std::optional<double> mfu;
  std::optional<double> hfu;
  std::array<std::optional<Seconds>, phase_count> phases{};
  std::optional<double>
      memory_gb;  ///< 2^30 bytes: of the device where it is known, else of the process
  std::optional<double> memory_peak_gb;
};

/// Not thread-safe.
class IntervalRows {
 public:
  explicit IntervalRows(RunInfo run) : run_(std::move(run)) {}

  /// The row that this step completes, if it does: steps that pass a multiple of the log interval
  /// do.
  std::optional<IntervalRow> add(const StepRecord& record);
  /// What is left when the run ends.
  std::optional<IntervalRow> rest();

 private:
  [[nodiscard]] IntervalRow row() const;

  RunInfo run_;
  StepRecord last_;
  StepTotals totals_;
  std::optional<std::int64_t> previous_step_;
};

/// "2024-01-29 10:30:15" in local time, with `separator` between date and time.
std::string local_time(double unix_seconds, char separator = ' ');

/// Pads with blanks on the right to `width`.
void append_padded(std::string& line, std::string_view text, std::size_t width);

/// `value` with `decimals`, or "n/a".
std::string fixed_or_na(std::optional<double> value, int decimals);

/// "data 3.1 ms (1.3 %) | forward …": the phases that took part, or nothing.
std::string phases_text(const IntervalRow& row);

}  // namespace flopmeter
