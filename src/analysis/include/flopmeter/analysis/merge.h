// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a run together: what the world did without counting anything twice, how the ranks
// differ, and which are missing.  Reads one stream after the other, so that ten thousand ranks need
// one open file and memory for their sums alone.
#pragma once

#include <flopmeter/analysis/straggler.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/core/units.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// A quantity over the ranks.
struct Spread {
  int ranks = 0;  ///< that had it
  double sum = 0;
  double least = 0;
  double most = 0;
  int least_rank = -1;
  int most_rank = -1;

  void add(double value, int rank);
  [[nodiscard]] std::optional<double> mean() const {
    return ranks > 0 ? std::optional{sum / ranks} : std::nullopt;
  }
};

/// One step of the world, from the ranks that reported it.
struct WorldStep {
  std::int64_t step = 0;
  int ranks = 0;       ///< that wrote it
  int world_size = 1;  ///< that should have
  Spread seconds;
  Spread mfu;
  std::optional<Flops> model_flops{};     ///< work that ranks replicate counted once
  std::optional<Flops> hardware_flops{};  ///< as executed
  std::optional<std::int64_t> tokens{};   ///< of all samples, each once
  std::optional<std::int64_t> samples{};

  [[nodiscard]] bool complete() const { return ranks >= world_size; }
};

/// One rank over the whole run.
struct RankSummary {
  int rank = 0;
  int starts = 0;  ///< streams it wrote
  StepTotals totals;
  std::int64_t repeated_steps = 0;  ///< after a restart
  std::int64_t damaged_lines = 0;
  std::optional<std::int64_t> first_step{};
  std::optional<std::int64_t> last_step{};
  double last_time = 0;  ///< end of its last record, seconds since 1970
  RankScore score;
};

/// Ranks of one start.
struct Start {
  std::string stamp;  ///< the earliest of its streams
  int world_size = 1;
  int ranks = 0;  ///< that wrote records
};

/// Counts of the world over the whole run.  Sums are of complete steps; if ranks are missing from
/// all of them, only what the others did is known.
struct WorldTotals {
  std::int64_t complete_steps = 0;
  std::int64_t incomplete_steps = 0;  ///< that not all ranks wrote: not in the sums
  std::optional<Flops> model_flops{};
  std::optional<Flops> hardware_flops{};
  std::optional<std::int64_t> tokens{};
  std::optional<std::int64_t> samples{};
  std::optional<Flops> reported_model_flops{};  ///< of all steps, by the ranks that wrote them
  std::optional<Flops> reported_hardware_flops{};
};

struct MergedRun {
  int world_size = 1;  ///< of the newest start
  int window_steps = 10;
  std::vector<RankSummary> ranks;  ///< in order; those that never wrote are among them
  std::vector<int> missing;        ///< never wrote a record
  std::vector<int> behind;         ///< stopped, or more than a window behind the middle rank
  std::vector<Start> starts;
  std::vector<WorldStep> steps;  ///< in order
  WorldTotals totals;
  StepTotals world;                          ///< of the ranks that wrote records: MFU, rates, time
  std::vector<std::string> missing_signals;  ///< for the search for stragglers
  std::vector<std::string> notes;            ///< what the totals exclude, with the reason
};

struct MergeOptions {
  int window_steps = 0;  ///< 0: the run's log interval
  StragglerOptions straggler;
};

MergedRun merge_ranks(const RunDirectory& run, const MergeOptions& options = {});

}  // namespace flopmeter
