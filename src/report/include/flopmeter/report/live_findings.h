// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/report/run_follower.h>

#include <vector>

namespace flopmeter {

/// Findings of the newest steps of the first rank, largest first.
std::vector<Finding> live_findings(const RunFollower& follower);

}  // namespace flopmeter
