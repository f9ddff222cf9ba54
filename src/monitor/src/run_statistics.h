// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/runstore/run_start.h>

#include <optional>

namespace flopmeter {

/// Time of the run over all its starts: the terms of goodput.
class RunStatistics {
 public:
  RunStatistics(double start_unix, std::int64_t start_ns, std::optional<EarlierRun> earlier)
      : start_unix_(start_unix), start_ns_(start_ns), earlier_(earlier) {}

  /// Fills run_seconds and productive_seconds of a record that ended at `end_ns`.  Times are those
  /// of the monotonic clock: only the time between two starts depends on the wall clock.
  void add(StepRecord& record, std::int64_t end_ns);

 private:
  double start_unix_;
  std::int64_t start_ns_;
  double before_ = 0;  ///< seconds of the run before this start
  double productive_ = 0;
  std::optional<EarlierRun> earlier_;
  bool first_ = true;
};

}  // namespace flopmeter
