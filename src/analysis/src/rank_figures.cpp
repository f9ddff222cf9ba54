// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/evidence.h>

#include <algorithm>
#include <functional>

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

double wait_for_last(std::span<const RankFigures> ranks, int rank) {
  const auto own = std::find_if(
      ranks.begin(), ranks.end(), [rank](const RankFigures& each) { return each.rank == rank; });
  if (own == ranks.end()) return 0;
  const auto longest = [&](const auto& work_of) {
    double most = 0;
    for (const RankFigures& each : ranks) most = std::max(most, work_of(each));
    return most;
  };
  const std::size_t steps = own->work_seconds.size();
  if (steps == 0) return longest(std::mem_fn(&RankFigures::work)) - own->work();
  double waited = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    const auto work_of = [i](const RankFigures& each) { return each.work_seconds[i]; };
    waited += longest(work_of) - own->work_seconds[i];
  }
  return waited / static_cast<double>(steps);
}

double wait_for_last(std::span<const RankFigures> ranks) {
  if (ranks.empty()) return 0;
  // The mean over the ranks of (longest - own): linear in the number of ranks.
  const auto wait = [&](const auto& work_of) {
    double longest = 0;
    double sum = 0;
    for (const RankFigures& each : ranks) {
      longest = std::max(longest, work_of(each));
      sum += work_of(each);
    }
    return longest - sum / static_cast<double>(ranks.size());
  };
  const std::size_t steps = ranks.front().work_seconds.size();
  if (steps == 0) return wait(std::mem_fn(&RankFigures::work));
  double waited = 0;
  for (std::size_t i = 0; i < steps; ++i)
    waited += wait([i](const RankFigures& each) { return each.work_seconds[i]; });
  return waited / static_cast<double>(steps);
}

}  // namespace flopmeter
