// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "field_means.h"

#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/sinks/sinks.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flopmeter {

/// The run in Prometheus terms: counters since the start, the newest gauges, and ratios over the
/// last log interval, as the field table lists them.  Not thread-safe.
class PrometheusText {
 public:
  /// Sums over the train steps.
  struct Totals {
    static constexpr std::array<double, 12> bounds = {
        0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60};

    StepTotals run;
    std::uint64_t steps = 0;
    double seconds = 0;
    std::array<std::uint64_t, bounds.size()> buckets{};  ///< cumulative, as the format requires
  };

  /// The series of a run that are not fields of the record.
  static std::vector<OutputSeries> run_series();

  explicit PrometheusText(RunContext run) : run_(std::move(run)) {}

  void add(const StepRecord& record);
  /// The text exposition format, version 0.0.4.  An unknown series is omitted.
  [[nodiscard]] std::string text() const;

 private:
  RunContext run_;
  std::vector<FieldValue> values_ = std::vector<FieldValue>(step_fields().size());
  FieldMeans interval_;
  Totals totals_;
  int interval_steps_ = 0;
  bool interval_complete_ = false;
};

}  // namespace flopmeter
