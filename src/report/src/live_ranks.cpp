// SPDX-License-Identifier: Apache-2.0
#include "live_ranks.h"

namespace flopmeter {

std::vector<RankWindows> live_windows(const RunDescription& run,
                                      const std::map<int, RecentSteps>& ranks) {
  std::vector<RankWindows> windows;
  windows.reserve(ranks.size());
  for (const auto& [rank, recent] : ranks) {
    RankWindow window{.steps = 1, .seconds = recent.step_seconds()};
    if (const auto speed = recent.flops.per_second()) window.flops = *speed * window.seconds;
    if (recent.phases[static_cast<std::size_t>(Phase::communication)])
      window.waited = window.communicated = recent.step_seconds() - recent.own_seconds();
    windows.push_back({.rank = rank, .role = run.role(rank), .windows = {window}});
  }
  return windows;
}

}  // namespace flopmeter
