// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_totals.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace flopmeter {

/// What an earlier start on the same directory left behind.
struct EarlierRun {
  double first_start_unix = 0;
  double productive_seconds = 0;
  std::int64_t last_step = 0;
};

/// Figures over the last log interval and over the whole run, side by side.  Tagged steps stay out
/// of both.
class RunStatistics {
 public:
  RunStatistics(int window, double start_unix, std::optional<EarlierRun> earlier);

  /// Fills the record's window, run and goodput fields.
  void add(StepRecord& record);

 private:
  std::vector<StepTotals> window_;  ///< of one step each
  std::size_t next_ = 0;
  StepTotals in_run_;
  double start_unix_;
  double productive_ = 0;
  std::optional<EarlierRun> earlier_;
  bool first_ = true;
};

}  // namespace flopmeter
