// SPDX-License-Identifier: Apache-2.0
//
// A stored run under another convention.  run.json contains the model configuration and each record
// its batch, so the FLOPs of each step can be computed again, exactly.
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
  RecomputedFigures now;     ///< empty if the record has no batch
};

struct RecomputedRun {
  std::string model;
  std::string from;  ///< the convention of the stored figures
  std::string to;
  std::vector<RecomputedStep> steps;
  RecomputedFigures stored;  ///< train steps that have both, together; MFU weighted by time
  RecomputedFigures now;
  std::int64_t without_batch = 0;  ///< records without a batch
  /// Records whose stored FLOPs are not those that the configuration gives under `from`, and the
  /// largest such difference as a share: the run does work that the configuration does not
  /// describe.
  std::int64_t differing = 0;
  double largest_difference = 0;
};

/// An error if the run does not contain its model configuration, or if the convention is unknown.
Result<RecomputedRun> recompute(const RunDirectory& run, const std::string& convention);

}  // namespace flopmeter
