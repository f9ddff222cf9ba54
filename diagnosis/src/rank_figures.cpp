// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/diagnosis/evidence.h>

namespace flopmeter {
namespace {

/// Means over all windows of a rank that has steps.
RankFigures figures_of(const RankWindows& rank, Verdict verdict) {
  RankFigures figures{.rank = rank.rank, .verdict = verdict};
  double steps = 0;
  double flops = 0;
  bool flops_known = true;
  for (const RankWindow& window : rank.windows) {
    steps += window.steps;
    figures.step_seconds += window.seconds;
    figures.communication_seconds += window.waited.value_or(0);
    flops += window.flops.value_or(0);
    flops_known = flops_known && window.flops;
  }
  const double work = figures.step_seconds - figures.communication_seconds;
  if (work > 0 && flops_known) figures.flops_per_second = flops / work;
  figures.step_seconds /= steps;
  figures.communication_seconds /= steps;
  return figures;
}

}  // namespace

std::vector<RankFigures> compare_ranks(std::span<const RankWindows> ranks,
                                       const StragglerOptions& options) {
  const StragglerReport report = find_stragglers(ranks, options);
  std::vector<RankFigures> all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].windows.empty()) all.push_back(figures_of(ranks[i], report.ranks[i].verdict));
  }
  return all;
}

}  // namespace flopmeter
