// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/diagnosis/diagnosis.h>
#include <flopmeter/diagnosis/run_evidence.h>
#include <flopmeter/viewer/live_findings.h>

namespace flopmeter {
namespace {

constexpr std::size_t most_ranks = 64;

/// The fading means of a rank as one window of a step.
RankWindows window_of(const RunDescription& run, int rank, const RecentSteps& recent) {
  RankWindow window{.steps = 1, .seconds = recent.step_seconds()};
  if (const auto speed = recent.flops.per_second()) window.flops = *speed * window.seconds;
  if (recent.phases[static_cast<std::size_t>(Phase::communication)])
    window.waited = window.communicated = recent.step_seconds() - recent.own_seconds();
  return {.rank = rank, .role = run.role(rank), .windows = {window}};
}

}  // namespace

std::vector<Finding> live_findings(const RunFollower& follower) {
  if (follower.window().empty()) return {};
  Evidence evidence;
  evidence.steps = {follower.window().begin(), follower.window().end()};
  evidence.peaks = follower.run().description.peaks;
  evidence.surveys = read_surveys(follower.run(), follower.window().front().rank);
  const auto& ranks = follower.totals().ranks;
  const std::size_t stride = (ranks.size() + most_ranks - 1) / most_ranks;
  std::size_t i = 0;
  std::vector<RankWindows> windows;
  for (const auto& [rank, recent] : ranks) {
    if (ranks.size() > 1 && i++ % stride == 0)
      windows.push_back(window_of(follower.run().description, rank, recent));
  }
  // The means are over many steps already, so one window tells.
  evidence.ranks = compare_ranks(windows, {.windows = 1, .of_windows = 1});
  auto diagnosis = diagnose(evidence);
  return diagnosis ? diagnosis->findings : std::vector<Finding>{};
}

}  // namespace flopmeter
