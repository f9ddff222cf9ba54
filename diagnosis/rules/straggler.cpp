// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace flopmeter {
namespace {

double work(const RankFigures& rank) {
  return rank.step_seconds - rank.communication_seconds;
}

constexpr double same_rate = 0.95;  // of a typical rank: who is late at that has more work

bool holds_others_up(const RankFigures& rank) {
  return rank.verdict == Verdict::slow || rank.verdict == Verdict::late;
}

/// What it costs the rank that is looked at: its own time, or what that waits for others; where
/// nobody waits, its share of what the slow one loses for all.
double cost_of(const RankFigures& slowest, double lag, const Evidence& evidence) {
  double waited = 0;
  for (const RankFigures& rank : evidence.ranks) {
    if (rank.rank == evidence.steps.front().rank) waited = rank.communication_seconds;
  }
  if (evidence.steps.front().rank == slowest.rank) waited = lag;
  return std::clamp(waited, lag / static_cast<double>(evidence.ranks.size()), lag);
}

std::optional<Finding> find(const Inquiry& inquiry) {
  const auto& ranks = inquiry.evidence.ranks;
  const RankFigures* slowest = nullptr;
  for (const RankFigures& rank : ranks) {
    if (holds_others_up(rank) && (slowest == nullptr || work(rank) > work(*slowest)))
      slowest = &rank;
  }
  if (slowest == nullptr) return std::nullopt;
  std::vector<const RankFigures*> others;
  for (const RankFigures& rank : ranks) {
    if (&rank != slowest) others.push_back(&rank);
  }
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end(), [](const auto* a, const auto* b) {
    return work(*a) < work(*b);
  });
  const RankFigures& typical = **middle;
  const double lag = work(*slowest) - work(typical);
  if (!(lag > 0)) return std::nullopt;  // it has so little to do that nobody waits for it
  const bool rates_known = slowest->flops_per_second > 0 && typical.flops_per_second > 0;
  if (rates_known && slowest->verdict == Verdict::late &&
      slowest->flops_per_second > same_rate * typical.flops_per_second)
    return std::nullopt;
  const double cost = cost_of(*slowest, lag, inquiry.evidence);
  const auto lost =
      std::min<std::int64_t>(std::llround(cost * 1e9 * static_cast<double>(inquiry.sums.steps)),
                             inquiry.waterfall.total / 2);
  Finding finding = finding_of(inquiry, "straggler", lost, rates_known ? 0.9 : 0.6);
  finding.rank = slowest->rank;
  finding.summary = "rank " + std::to_string(slowest->rank) + " is slow: it works " +
                    duration({work(*slowest)}) + " a step, a typical rank " +
                    duration({work(typical)});
  finding.evidence = "it waits " + duration({slowest->communication_seconds}) +
                     " a step for others, a typical rank " +
                     duration({typical.communication_seconds}) +
                     (rates_known ? "; it computes at " + si(slowest->flops_per_second) +
                                        "FLOP/s against " + si(typical.flops_per_second) + "FLOP/s"
                                  : "");
  finding.remedy =
      "look at the machine of rank " + std::to_string(slowest->rank) +
      ": other processes, clocks and temperature, its disk and network; exchange it or "
      "leave it out";
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

extern const Rule straggler_plugin;
constinit const Rule straggler_plugin{
    .name = "straggler",
    .help = "one rank is slower at the same work and the others wait for it",
    .find = find,
    .fires = [] { return with_ranks(0.04); },
    .quiet = [] { return with_ranks(0.004); }};

}  // namespace flopmeter
