// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/diagnosis/diagnosis.h>
#include <flopmeter/diagnosis/run_evidence.h>
#include <flopmeter/viewer/live_findings.h>

namespace flopmeter {
namespace {

constexpr std::size_t most_ranks = 64;

RankFigures figures_of(int rank, const RecentSteps& recent) {
  RankFigures figures;
  figures.rank = rank;
  figures.step_seconds = recent.step_seconds();
  figures.communication_seconds = recent.step_seconds() - recent.own_seconds();
  const double own = recent.own_seconds() * recent.weight;
  if (own > 0) figures.flops_per_second = recent.hardware_flops / own;
  return figures;
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
  for (const auto& [rank, recent] : ranks) {
    if (ranks.size() > 1 && i++ % stride == 0) evidence.ranks.push_back(figures_of(rank, recent));
  }
  auto diagnosis = diagnose(evidence);
  return diagnosis ? diagnosis->findings : std::vector<Finding>{};
}

}  // namespace flopmeter
