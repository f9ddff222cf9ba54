// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace flopmeter {
namespace {

constexpr double least_lag = 0.10;  // of the other ranks' median

std::optional<Finding> find(const Inquiry& inquiry) {
  const auto& ranks = inquiry.evidence.ranks;
  if (ranks.size() < 2) return std::nullopt;
  const auto work = [](const RankFigures& rank) {
    return rank.step_seconds - rank.communication_seconds;
  };
  const auto slowest = std::max_element(
      ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) { return work(a) < work(b); });
  std::vector<const RankFigures*> others;
  for (const RankFigures& rank : ranks) {
    if (rank.rank != slowest->rank) others.push_back(&rank);
  }
  std::nth_element(others.begin(),
                   others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2),
                   others.end(),
                   [&](const auto* a, const auto* b) { return work(*a) < work(*b); });
  const RankFigures& typical = *others[others.size() / 2];
  const double lag = work(*slowest) - work(typical);
  if (!(lag > least_lag * work(typical))) return std::nullopt;
  // More time for more work is no fault of the rank.
  const bool rates_known = slowest->flops_per_second > 0 && typical.flops_per_second > 0;
  if (rates_known && slowest->flops_per_second > 0.95 * typical.flops_per_second)
    return std::nullopt;
  const auto lost =
      std::min<std::int64_t>(std::llround(lag * 1e9 * static_cast<double>(inquiry.sums.steps)),
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
  for (int rank = 0; rank < 4; ++rank) {
    const double own = rank == 2 ? 0.1 + slow_seconds : 0.1;
    window.ranks.push_back({.rank = rank,
                            .step_seconds = 0.1 + slow_seconds,
                            .communication_seconds = 0.1 + slow_seconds - own,
                            .flops_per_second = 5e10 / own});
  }
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
