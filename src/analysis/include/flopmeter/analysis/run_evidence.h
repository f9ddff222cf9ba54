// SPDX-License-Identifier: Apache-2.0
//
// Evidence from a stored run: its records and operator profiles.
#pragma once

#include <flopmeter/analysis/evidence.h>
#include <flopmeter/runstore/run_directory.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

struct EvidenceOptions {
  std::optional<int> rank{};           ///< only this one; empty: all ranks
  std::optional<std::size_t> steps{};  ///< only the newest records; empty: the whole run
};

/// Evidence of a stored run.  Ranks are compared by their newest 200 train steps.
Evidence read_evidence(const RunDirectory& run, const EvidenceOptions& options = {});

/// Totals of one rank over all starts; a step that a restart repeated counts as it was done last.
StepTotals read_totals(const RunDirectory& run, int rank);

/// All operator profiles of a rank, oldest first; damaged lines are skipped.
std::vector<OpProfile> read_profiles(const RunDirectory& run, int rank);

/// One line of a profile file; empty if it is damaged.
std::optional<OpProfile> parse_op_profile(std::string_view line);

}  // namespace flopmeter
