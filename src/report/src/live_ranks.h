// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/straggler.h>
#include <flopmeter/report/live_totals.h>

#include <map>
#include <vector>

namespace flopmeter {

/// The newest steps of each rank as one window of a mean step, in order of rank.
std::vector<RankWindows> live_windows(const RunMetadata& run,
                                      const std::map<int, RecentSteps>& ranks);

/// How such windows are compared: each is a mean over many steps, so one is enough.
inline constexpr StragglerOptions live_straggler_options{.windows = 1, .of_windows = 1};

}  // namespace flopmeter
