// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/straggler.h>
#include <flopmeter/report/live_totals.h>

#include <map>
#include <vector>

namespace flopmeter {

/// The fading means of each rank as one window of a step, in order of rank.
std::vector<RankWindows> live_windows(const RunDescription& run,
                                      const std::map<int, RecentSteps>& ranks);

/// How such windows are judged: the means are over many steps already, so one tells.
inline constexpr StragglerOptions live_judgement{.windows = 1, .of_windows = 1};

}  // namespace flopmeter
