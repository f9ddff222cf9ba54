// SPDX-License-Identifier: Apache-2.0
//
// Evidence from a stored run, and the profiles beside its records.
#pragma once

#include <flopmeter/analysis/evidence.h>
#include <flopmeter/runstore/run_directory.h>

#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// The newest `most` records of a rank with what belongs to them.  The first steps of a run, which
/// only warm up, are left out.  All ranks are compared, by their newest 200
/// train steps.
Evidence read_evidence(const RunDirectory& run, int rank, std::size_t most = 1000);

/// All profiles of a rank, oldest first; lines that are none are passed over.
std::vector<OpProfile> read_profiles(const RunDirectory& run, int rank);

/// One line of a profile file; empty where it is none.
std::optional<OpProfile> parse_op_profile(std::string_view line);

}  // namespace flopmeter
