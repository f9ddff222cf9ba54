// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/runstore/run_start.h>

#include <optional>

namespace flopmeter {

/// Time of the run over all its starts: the terms of goodput.
class RunStatistics {
 public:
  RunStatistics(double start_unix, std::optional<EarlierRun> earlier)
      : start_unix_(start_unix), earlier_(earlier) {}

  /// Fills run_seconds and productive_seconds.
  void add(StepRecord& record);

 private:
  double start_unix_;
  double productive_ = 0;
  std::optional<EarlierRun> earlier_;
  bool first_ = true;
};

}  // namespace flopmeter
