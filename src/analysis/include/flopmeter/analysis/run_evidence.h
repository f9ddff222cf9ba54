// SPDX-License-Identifier: Apache-2.0
//
// Evidence from a stored run.
#pragma once

#include <flopmeter/analysis/evidence.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace flopmeter {

struct EvidenceOptions {
  std::optional<int> rank{};           ///< only this one; empty: all ranks
  std::optional<std::size_t> steps{};  ///< only the newest records; empty: the whole run
  std::optional<StepTotals> totals{};  ///< known already: not read again
  std::optional<std::vector<RankFigures>> ranks{};  ///< the same
  std::function<void(double share)> progress{};     ///< called while totals are read
};

/// Evidence of a stored run.  Ranks are compared by their newest 200 train steps.
Evidence read_evidence(const RunDirectory& run, const EvidenceOptions& options = {});

}  // namespace flopmeter
