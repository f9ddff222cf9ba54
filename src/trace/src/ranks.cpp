// SPDX-License-Identifier: Apache-2.0
//
// Compares the ranks of one run, and finds the rank that the others wait for.
#include "collectives.h"
#include "intervals.h"

#include <flopmeter/core/step_totals.h>
#include <flopmeter/core/text.h>
#include <flopmeter/trace/trace_report.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace flopmeter {
namespace {

/// Pipeline stages exchange pairwise: no other rank waits for them.
bool is_point_to_point(std::string_view kind) {
  return kind.find("send") != std::string_view::npos || kind.find("recv") != std::string_view::npos;
}

/// The same call on all ranks: by group and sequence number, else the k-th of a kind in a group.
using CallKey = std::pair<std::string, std::int64_t>;
using Calls = std::map<CallKey, const CollectiveCall*>;

Calls calls_by_key(const DeviceReport& report) {
  Calls calls;
  std::map<std::string, std::int64_t> seen;
  for (const CollectiveCall& call : report.collective_calls) {
    if (is_point_to_point(call.kind)) continue;
    const std::string name = call.group + '/' + call.kind;
    const bool numbered = call.sequence != no_id;
    calls.try_emplace({numbered ? name + '#' : name, numbered ? call.sequence : seen[name]++},
                      &call);
  }
  return calls;
}

/// How far a rank's clock is ahead of the first rank's: collectives end together.  Empty if the two
/// have no call in common.
std::optional<TraceNs> clock_offset(const Calls& first, const Calls& other) {
  std::vector<TraceNs> offsets;
  for (const auto& [key, call] : other) {
    if (const auto same = first.find(key); same != first.end())
      offsets.push_back(call->time.end - same->second->time.end);
  }
  if (offsets.empty()) return std::nullopt;
  const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
  std::nth_element(offsets.begin(), middle, offsets.end());
  return *middle;
}

/// One rank at the calls that were compared.
struct RankWaits {
  std::vector<TimeWindow> waits;       ///< from its arrival to that of the last rank
  std::vector<TraceNs> transfer;       ///< by size: shortest time of each call, summed
  std::vector<std::int64_t> compared;  ///< by size: number of calls
  WideInt wait = 0;
  std::int64_t last = 0;  ///< calls at which it arrived last

  explicit RankWaits(std::size_t sizes) : transfer(sizes), compared(sizes) {}
};

/// Matches equal calls of the ranks.
class Comparison {
 public:
  explicit Comparison(TraceReport& report) : report_(report) {
    for (const DeviceReport& rank : report.ranks) {
      calls_.push_back(calls_by_key(rank));
      ranks_.emplace_back(rank.collectives.size());
    }
    align_clocks();
    std::set<CallKey> keys;
    for (const Calls& calls : calls_) {
      for (const auto& [key, call] : calls) keys.insert(key);
    }
    for (const CallKey& key : keys) compare(key);
  }

  [[nodiscard]] std::int64_t compared() const { return compared_; }
  [[nodiscard]] const std::vector<RankWaits>& ranks() const { return ranks_; }

 private:
  void align_clocks() {
    constexpr TraceNs same_clock = 10'000;
    offsets_.assign(calls_.size(), 0);
    bool differ = false;
    for (std::size_t i = 1; i < calls_.size(); ++i) {
      const TraceNs stated = report_.ranks.front().base_time - report_.ranks[i].base_time;
      const TraceNs seen = clock_offset(calls_.front(), calls_[i]).value_or(stated);
      const bool same = std::abs(seen - stated) < same_clock;
      offsets_[i] = same ? stated : seen;
      differ = differ || !same;
    }
    if (differ)
      report_.notes.emplace_back(
          "clocks of the ranks differ: they are shifted so that collectives end together");
  }

  /// The ranks that take part in a call; empty unless all of its group do, or all ranks.
  [[nodiscard]] std::vector<std::size_t> participants(const CallKey& key) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].contains(key)) found.push_back(i);
    }
    if (found.size() == calls_.size()) return found;
    const CollectiveCall& call = *calls_[found.front()].at(key);
    const auto group_size = report_.ranks[found.front()].collectives[call.size].group_size;
    const bool whole_group = !call.group.empty() && found.size() > 1 && group_size &&
                             *group_size == static_cast<std::int64_t>(found.size());
    return whole_group ? found : std::vector<std::size_t>{};
  }

  void compare(const CallKey& key) {
    const std::vector<std::size_t> found = participants(key);
    if (found.empty()) return;
    ++compared_;
    const auto call = [&](std::size_t rank) -> const CollectiveCall& {
      return *calls_[rank].at(key);
    };
    const auto arrival = [&](std::size_t rank) { return call(rank).time.start - offsets_[rank]; };
    const std::size_t last = *std::max_element(
        found.begin(), found.end(), [&](auto a, auto b) { return arrival(a) < arrival(b); });
    TraceNs shortest = call(last).time.length();
    for (const std::size_t rank : found) shortest = std::min(shortest, call(rank).time.length());
    ++ranks_[last].last;
    for (const std::size_t rank : found) {
      const TraceNs start = call(rank).time.start;
      const TraceNs wait = arrival(last) - arrival(rank);
      ranks_[rank].wait += wait;
      ranks_[rank].waits.push_back({start, start + wait});
      ranks_[rank].transfer[call(rank).size] += shortest;
      ++ranks_[rank].compared[call(rank).size];
    }
  }

  TraceReport& report_;
  std::vector<Calls> calls_;
  std::vector<TraceNs> offsets_;  // of each rank's times from the first rank's
  std::vector<RankWaits> ranks_;
  std::int64_t compared_ = 0;
};

/// The part of a window that the intervals cover.
TraceNs covered(std::span<const TimeWindow> intervals, TimeWindow window) {
  std::vector<TimeWindow> inside;
  for (const TimeWindow& one : intervals) {
    const TimeWindow part{std::max(one.start, window.start), std::min(one.end, window.end)};
    if (part.start < part.end) inside.push_back(part);
  }
  return length_of_union(std::move(inside));
}

/// Separates waiting from transfer.
void set_waits(const RankWaits& waits, DeviceReport& report) {
  report.collective_wait = covered(waits.waits, report.span);
  for (TraceStepReport& step : report.steps) {
    if (step.device) step.collective_wait = covered(waits.waits, *step.device);
  }
  for (std::size_t i = 0; i < report.collectives.size(); ++i) {
    CollectiveSummary& size = report.collectives[i];
    if (waits.compared[i] != size.count) continue;
    size.transfer = waits.transfer[i];
    set_bandwidth(size, waits.transfer[i]);
  }
}

/// The rank that the others wait for; empty if none waits, or if lateness moves from rank to rank.
std::optional<std::size_t> latest_rank(const std::vector<RankWaits>& ranks) {
  const auto least = std::min_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.wait < b.wait; });
  const bool most_often_last = std::all_of(
      ranks.begin(), ranks.end(), [&](const RankWaits& rank) { return rank.last <= least->last; });
  const bool any_waits =
      std::any_of(ranks.begin(), ranks.end(), [](const RankWaits& rank) { return rank.wait > 0; });
  if (!most_often_last || !any_waits) return std::nullopt;
  return static_cast<std::size_t>(least - ranks.begin());
}

Finding straggler_finding(const TraceStraggler& straggler,
                          const Comparison& comparison,
                          const RankWaits& waits,
                          const DeviceReport& report) {
  Finding finding;
  finding.rule = "straggler";
  finding.rank = straggler.rank;
  finding.summary = "the other ranks wait for rank " + std::to_string(straggler.rank);
  finding.evidence = "it arrives last at " + grouped(waits.last) + " of " +
                     grouped(comparison.compared()) + " collectives; the others wait " +
                     duration(straggler.wait) + " on average";
  finding.recommendation = "compare its idle time and its operators with those of another rank";
  finding.seconds = straggler.wait.value;
  finding.share = straggler.wait.value / (static_cast<double>(report.span.length()) * 1e-9);
  return finding;
}

void compare_ranks(TraceReport& report) {
  const Comparison comparison{report};
  if (comparison.compared() == 0) {
    report.notes.emplace_back("no collective occurs on all ranks: waiting cannot be compared");
    return;
  }
  const std::vector<RankWaits>& ranks = comparison.ranks();
  WideInt all = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    set_waits(ranks[i], report.ranks[i]);
    all += ranks[i].wait;
  }
  const std::optional<std::size_t> latest = latest_rank(ranks);
  if (!latest) return;
  DeviceReport& rank = report.ranks[*latest];
  report.straggler = TraceStraggler{.rank = rank.rank.value_or(static_cast<int>(*latest)),
                                    .wait = {static_cast<double>(all - ranks[*latest].wait) * 1e-9 /
                                             static_cast<double>(ranks.size() - 1)}};
  constexpr double notable = 0.01;
  Finding finding = straggler_finding(*report.straggler, comparison, ranks[*latest], rank);
  if (*finding.share >= notable) rank.findings.push_back(std::move(finding));
}

void note_ranks(TraceReport& report) {
  std::set<int> seen;
  std::set<std::size_t> steps;
  for (const DeviceReport& rank : report.ranks) {
    if (rank.rank && !seen.insert(*rank.rank).second && rank.file != report.ranks.front().file)
      report.notes.push_back("rank " + std::to_string(*rank.rank) + " occurs in several files");
    steps.insert(rank.steps.size());
  }
  if (steps.size() > 1) report.notes.emplace_back("the ranks have different numbers of steps");
}

}  // namespace

TraceReport merge_ranks(std::vector<DeviceReport> ranks) {
  TraceReport report;
  report.ranks = std::move(ranks);
  std::stable_sort(report.ranks.begin(), report.ranks.end(), [](const auto& a, const auto& b) {
    return a.rank < b.rank;
  });
  for (DeviceReport& rank : report.ranks) {
    for (Finding& finding : rank.findings) finding.rank = rank.rank;
  }
  std::vector<StepTotals> totals;
  for (const DeviceReport& rank : report.ranks) {
    if (rank.mfu) totals.push_back(StepTotals::of(rank.records));
  }
  if (!totals.empty()) report.mfu = StepTotals::of_ranks(totals).mfu();
  if (report.ranks.size() > 1) {
    note_ranks(report);
    compare_ranks(report);
  }
  return report;
}

}  // namespace flopmeter
