// SPDX-License-Identifier: Apache-2.0
//
// RunOverview: what a report shows of a run, collected record by record in bounded memory.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/phase.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/report/timeline.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace flopmeter {

/// The train steps of one rank.
struct RankTotals {
  StepTotals steps;
  std::optional<double> first_unix;               ///< start of the first step
  std::optional<std::int64_t> memory_peak_bytes;  ///< of the device if there is one
  std::uint64_t dropped_records = 0;

  void add(const StepRecord& record);
};

/// A record of another kind than a train step.
struct RunEvent {
  std::int64_t step = 0;
  StepTag tag = StepTag::train;
  double time_unix = 0;  ///< end
  double seconds = 0;
};

/// Mean seconds of a step without waiting for other ranks.
double own_seconds(const StepTotals& totals);

/// Takes the records of all ranks in any order.  Averages cover train steps only.
class RunOverview {
 public:
  /// Curves have at most `most_buckets` points.
  explicit RunOverview(std::size_t most_buckets = 2000);

  void add(const StepRecord& record);

  Timeline timeline;
  std::map<int, RankTotals> ranks;
  std::map<FlopsProvenance, std::int64_t> sources;  ///< train steps by provenance of their FLOPs
  std::optional<AttentionPairs> attention_pairs;
  std::deque<RunEvent> events;               ///< the newest of the lowest rank
  std::map<std::string, StepTotals> stages;  ///< of the lowest rank, by name; records of any kind

  /// All ranks together.
  [[nodiscard]] StepTotals all() const;
  /// Ranks without a record for long, while others have newer ones.
  [[nodiscard]] std::set<int> silent_ranks() const;
};

}  // namespace flopmeter
