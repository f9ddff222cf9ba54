// SPDX-License-Identifier: Apache-2.0
//
// RankComparison: the ranks of a run compared over their newest steps, from a stream of records.
#pragma once

#include <flopmeter/analysis/evidence.h>
#include <flopmeter/analysis/rank_windows.h>

#include <cstdint>
#include <map>
#include <vector>

namespace flopmeter {

/// Takes the train records of each rank in order of steps.
class RankComparison {
 public:
  explicit RankComparison(const RunMetadata& run) : run_(run) {}

  void add(const StepRecord& record);
  /// One for each rank, in order; empty if only one is known.
  [[nodiscard]] std::vector<RankFigures> figures() const;

 private:
  static constexpr std::size_t kept_steps = 200;

  RunMetadata run_;
  std::map<int, WindowSums> ranks_;
  /// Seconds outside communication of the newest steps, by rank.
  std::map<std::int64_t, std::vector<std::pair<int, float>>> steps_;
};

}  // namespace flopmeter
