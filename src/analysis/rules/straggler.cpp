// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace flopmeter {
namespace {

constexpr double same_rate = 0.95;  // of a typical rank: who is late at that has more work

bool holds_others_up(const RankFigures& rank) {
  return rank.verdict == Verdict::slow || rank.verdict == Verdict::late;
}

/// The median of the ranks that are not stragglers.
const RankFigures* typical_of(std::span<const RankFigures> ranks) {
  std::vector<const RankFigures*> others;
  for (const RankFigures& rank : ranks) {
    if (!holds_others_up(rank)) others.push_back(&rank);
  }
  if (others.empty()) return nullptr;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end(), [](const auto* a, const auto* b) {
    return a->work() < b->work();
  });
  return *middle;
}

bool rates_known(const RankFigures& rank, const RankFigures& typical) {
  return rank.flops_per_second > 0 && typical.flops_per_second > 0;
}

/// Seconds of a step that a slow rank takes more than a typical one; 0 for all others.
double lag_of(const RankFigures& rank, const RankFigures& typical) {
  if (!holds_others_up(rank)) return 0;
  if (rank.verdict == Verdict::late && rates_known(rank, typical) &&
      rank.flops_per_second > same_rate * typical.flops_per_second)
    return 0;
  return std::max(0.0, rank.work() - typical.work());
}

/// Seconds by which a step is shorter when slow ranks take what a typical one does.  In each step
/// some rank still comes last.
double gain_of(std::span<const RankFigures> ranks, const RankFigures& typical, double lag) {
  const std::size_t steps = typical.work_seconds.size();
  if (steps == 0) return lag;
  std::vector<double> last(steps);
  std::vector<double> last_without_lag(steps);
  for (const RankFigures& rank : ranks) {
    const double less = lag_of(rank, typical);
    for (std::size_t i = 0; i < steps; ++i) {
      last[i] = std::max(last[i], rank.work_seconds[i]);
      last_without_lag[i] = std::max(last_without_lag[i], rank.work_seconds[i] - less);
    }
  }
  const double now = std::accumulate(last.begin(), last.end(), 0.0);
  const double then = std::accumulate(last_without_lag.begin(), last_without_lag.end(), 0.0);
  return (now - then) / static_cast<double>(steps);
}

/// Cost: for all ranks, the gain; for one rank, its own time or its wait for others, at least its
/// share of the total loss.
double cost_of(const RankFigures& slowest, double gain, const Evidence& evidence) {
  if (!evidence.rank || *evidence.rank == slowest.rank) return gain;
  double waited = 0;
  for (const RankFigures& rank : evidence.ranks) {
    if (rank.rank == *evidence.rank) waited = rank.communication_seconds;
  }
  return std::clamp(waited, gain / static_cast<double>(evidence.ranks.size()), gain);
}

std::optional<Finding> find(const RuleContext& context) {
  const auto& ranks = context.evidence.ranks;
  const RankFigures* typical = typical_of(ranks);
  if (typical == nullptr) return std::nullopt;
  const auto slowest =
      std::max_element(ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) {
        return lag_of(a, *typical) < lag_of(b, *typical);
      });
  const double lag = lag_of(*slowest, *typical);
  if (!(lag > 0)) return std::nullopt;  // no rank waits for a rank with so little work
  const auto slow = std::count_if(ranks.begin(), ranks.end(), [&](const RankFigures& rank) {
    return lag_of(rank, *typical) > 0;
  });
  const bool rates = rates_known(*slowest, *typical);
  const double cost = cost_of(*slowest, gain_of(ranks, *typical, lag), context.evidence);
  const std::int64_t lost = std::min(context.all_steps(cost), context.budget.total / 2);
  Finding finding =
      finding_of(context, "straggler", save(context, causes::straggler, lost), rates ? 0.9 : 0.6);
  finding.rank = slowest->rank;
  finding.summary = "rank " + std::to_string(slowest->rank) + " is slow: it works " +
                    duration({slowest->work()}) + " a step, a typical rank " +
                    duration({typical->work()});
  finding.evidence = "it waits " + duration({slowest->communication_seconds}) +
                     " a step for others, a typical rank " +
                     duration({typical->communication_seconds}) +
                     (rates ? "; it computes at " + si(slowest->flops_per_second) +
                                  "FLOP/s against " + si(typical->flops_per_second) + "FLOP/s"
                            : "") +
                     (slow > 1 ? "; slow ranks in all: " + std::to_string(slow) : "");
  finding.recommendation =
      "look at the machine of rank " + std::to_string(slowest->rank) +
      ": other processes, clocks and temperature, its disk and network; replace it or "
      "exclude it";
  return finding;
}

Evidence with_ranks(double slow_seconds) {
  Evidence window = example_window(
      [&](StepRecord& record) { prolong(record, Phase::communication, slow_seconds); });
  std::vector<RankWindows> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const double waited = rank == 2 ? 0 : slow_seconds;
    ranks.push_back({.rank = rank});
    for (std::int64_t i = 0; i < 3; ++i) {
      ranks.back().windows.push_back({.index = i,
                                      .steps = 1,
                                      .seconds = 0.1 + slow_seconds,
                                      .flops = 5e9,
                                      .waited = waited,
                                      .communicated = waited});
    }
  }
  window.ranks = compare_ranks(ranks);
  return window;
}

}  // namespace

extern constinit const Rule rule_straggler{
    .name = "straggler",
    .help = "one rank is slower at the same work and the others wait for it",
    .cause = &causes::straggler,
    .find = find,
    .fires = [] { return with_ranks(0.04); },
    .negative = [] { return with_ranks(0.004); }};

}  // namespace flopmeter
