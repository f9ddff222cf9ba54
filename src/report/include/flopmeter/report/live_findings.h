// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/report/run_follower.h>

#include <vector>

namespace flopmeter {

/// What the diagnosis finds in the newest steps, largest first; nothing where no MFU can be formed.
std::vector<Finding> live_findings(const RunFollower& follower);

}  // namespace flopmeter
