// SPDX-License-Identifier: Apache-2.0
//
// IntervalRows: combines steps into one row per log interval, as the text table, the summary, the
// console, and TensorBoard show them.
#pragma once

#include "field_means.h"

#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_totals.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flopmeter {

/// Means over the train steps of one log interval; rates are sums over sums.
struct IntervalRow {
  StepRecord last;  ///< the interval's last train step; number and time are those of its last step
  std::int64_t steps = 0;
  Seconds step_seconds;
  std::optional<double> tflops_per_device;
  std::optional<double> tflops_total;        ///< of all ranks; empty if ranks differ
  std::optional<double> samples_per_second;  ///< of all ranks
  std::optional<double> tokens_per_second;   ///< of all ranks
  std::optional<double> mfu;
  std::optional<double> mfu_run;  ///< over the train steps of the run so far
  std::optional<double> hfu;
  std::array<std::optional<Seconds>, phase_count> phases{};
  /// 2^30 bytes of device memory if it is known, else of process memory.
  std::optional<double> memory_gb;
  std::optional<double> memory_peak_gb;
  std::string_view bound;  ///< of an asynchronous device: see device_bound()
  FieldMeans means;        ///< of every field
};

/// Whether a record is a training step of any kind.
constexpr bool is_step(StepTag tag) {
  return tag == StepTag::train || tag == StepTag::profile || tag == StepTag::compile;
}

/// Not thread-safe.
class IntervalRows {
 public:
  /// Two rows are at least `least_seconds` apart.
  explicit IntervalRows(RunContext run, double least_seconds = 0)
      : run_(std::move(run)), least_seconds_(least_seconds) {}

  /// The row that this step completes: steps that pass a multiple of the log interval do.
  std::optional<IntervalRow> add(const StepRecord& record);
  /// The steps since the last row.
  std::optional<IntervalRow> rest();

 private:
  [[nodiscard]] IntervalRow row() const;

  RunContext run_;
  double least_seconds_;
  std::optional<double> row_unix_;  ///< of the previous row, or the start of the first step
  StepRecord last_;
  FieldMeans means_;
  StepTotals totals_;  ///< of the interval
  StepTotals run_totals_;
  std::optional<std::int64_t> previous_step_;
};

/// FLOP/s of all devices over those of one device of this rank; empty if ranks differ.
std::optional<double> total_factor(const RunContext& run, const StepRecord& record);

/// "2024-01-29 10:30:15" in local time, with `separator` between date and time.
std::string local_time(double unix_seconds, char separator = ' ');

/// Pads with spaces on the right to `width`.
void append_padded(std::string& line, std::string_view text, std::size_t width);

/// `value` with `decimals`, or "n/a".
std::string fixed_or_na(std::optional<double> value, int decimals);

/// "data 3.1 ms (1.3 %) | forward …": the phases that took time.
std::string phases_text(const IntervalRow& row);

}  // namespace flopmeter
