// SPDX-License-Identifier: Apache-2.0
//
// A stored run under another convention.  run.json holds the model's configuration and every record
// its batch, so the FLOPs of each step are worked out anew, as exactly as at the time.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// FLOPs and utilization of a step, or of a run's train steps together.
struct RecomputedFigures {
  std::optional<Flops> model_flops;
  std::optional<Flops> hardware_flops;
  std::optional<double> mfu;
  std::optional<double> hfu;
};

struct RecomputedStep {
  std::int64_t step = 0;
  int rank = 0;
  StepTag tag = StepTag::train;
  RecomputedFigures stored;  ///< as the record has it
  RecomputedFigures now;     ///< empty where the record does not say what the step was fed
};

struct RecomputedRun {
  std::string model;
  std::string from;  ///< the convention of the stored figures
  std::string to;
  std::vector<RecomputedStep> steps;
  RecomputedFigures stored;  ///< train steps that have both, together; MFU weighted by time
  RecomputedFigures now;
  std::int64_t without_batch = 0;  ///< records that do not say what their step was fed
  /// Records whose stored FLOPs are not those that the configuration gives under `from`, and the
  /// largest such difference as a share: what ran was not quite what the configuration says.
  std::int64_t differing = 0;
  double largest_difference = 0;
};

/// An error where the run does not hold its model's configuration, or the convention is not known.
Result<RecomputedRun> recompute(const RunDirectory& run, const std::string& convention);

}  // namespace flopmeter
