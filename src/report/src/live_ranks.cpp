// SPDX-License-Identifier: Apache-2.0
#include "live_ranks.h"

#include <flopmeter/report/run_overview.h>

namespace flopmeter {

std::vector<RankWindows> live_windows(const RunMetadata& run,
                                      const std::map<int, RecentSteps>& ranks) {
  std::vector<RankWindows> windows;
  windows.reserve(ranks.size());
  for (const auto& [rank, recent] : ranks) {
    const StepTotals totals = recent.totals();
    const double seconds = totals.step_seconds().value_or(Seconds{}).value;
    RankWindow window{.steps = 1, .seconds = seconds};
    if (const auto speed = totals.flops_per_second()) window.flops = *speed * seconds;
    if (totals.phase(Phase::communication))
      window.waited = window.communicated = seconds - own_seconds(totals);
    windows.push_back({.rank = rank, .role = run.role(rank), .windows = {window}});
  }
  return windows;
}

}  // namespace flopmeter
