// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one run side by side: which of them do the others wait for?
#include <flopmeter/core/text.h>
#include <flopmeter/core/utilization.h>
#include <flopmeter/trace/trace_report.h>

#include <algorithm>
#include <map>
#include <set>

namespace flopmeter {
namespace {

/// Pipeline stages exchange pairwise: no other rank waits for them.
bool is_point_to_point(std::string_view kind) {
  return kind.find("send") != std::string_view::npos || kind.find("recv") != std::string_view::npos;
}

/// The calls that every rank has: by group and sequence number, else the k-th of a kind in a group.
using CallKey = std::pair<std::string, std::int64_t>;

std::map<CallKey, TimeWindow> calls_by_key(const DeviceReport& report) {
  std::map<CallKey, TimeWindow> calls;
  std::map<std::string, std::int64_t> seen;
  for (const CollectiveCall& call : report.collective_calls) {
    if (is_point_to_point(call.kind)) continue;
    const std::string name = call.group + '/' + call.kind;
    const bool numbered = call.sequence != no_id;
    calls.try_emplace({numbered ? name + '#' : name, numbered ? call.sequence : seen[name]++},
                      call.time);
  }
  return calls;
}

/// How far a rank's clock is ahead of the first rank's: collectives end together.
TraceNs clock_offset(const std::map<CallKey, TimeWindow>& first,
                     const std::map<CallKey, TimeWindow>& other) {
  std::vector<TraceNs> offsets;
  for (const auto& [key, time] : other) {
    if (const auto same = first.find(key); same != first.end())
      offsets.push_back(time.end - same->second.end);
  }
  if (offsets.empty()) return 0;
  const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
  std::nth_element(offsets.begin(), middle, offsets.end());
  constexpr TraceNs same_clock = 10'000;
  return *middle<same_clock&& * middle> - same_clock ? 0 : *middle;
}

struct RankWait {
  WideInt wait = 0;
  std::int64_t last = 0;  ///< calls at which the rank arrived last
};

void find_straggler(TraceReport& report) {
  std::vector<std::map<CallKey, TimeWindow>> calls;
  for (const DeviceReport& rank : report.ranks) calls.push_back(calls_by_key(rank));
  std::vector<TraceNs> offsets(calls.size(), 0);
  for (std::size_t i = 1; i < calls.size(); ++i) offsets[i] = clock_offset(calls.front(), calls[i]);
  if (std::any_of(offsets.begin(), offsets.end(), [](TraceNs offset) { return offset != 0; }))
    report.notes.emplace_back(
        "clocks of the ranks differ: they are shifted so that collectives end together");

  std::vector<RankWait> waits(calls.size());
  std::int64_t compared = 0;
  for (const auto& [key, first] : calls.front()) {
    std::vector<WideInt> arrivals;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto same = calls[i].find(key);
      if (same == calls[i].end()) break;
      arrivals.push_back(WideInt{same->second.start} - offsets[i]);
    }
    if (arrivals.size() != calls.size()) continue;
    const auto last = std::max_element(arrivals.begin(), arrivals.end());
    for (std::size_t i = 0; i < arrivals.size(); ++i) waits[i].wait += *last - arrivals[i];
    ++waits[static_cast<std::size_t>(last - arrivals.begin())].last;
    ++compared;
  }
  if (compared == 0) {
    report.notes.emplace_back("no collective occurs on all ranks: waiting cannot be compared");
    return;
  }
  const auto least = std::min_element(
      waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.wait < b.wait; });
  const auto most_last = std::max_element(
      waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.last < b.last; });
  if (least->last != most_last->last) return;  // lateness moves from rank to rank
  WideInt others = 0;
  for (const RankWait& wait : waits) others += wait.wait;
  others -= least->wait;
  const auto index = static_cast<std::size_t>(least - waits.begin());
  report.straggler = TraceStraggler{
      .rank = report.ranks[index].rank.value_or(static_cast<int>(index)),
      .wait = {static_cast<double>(others) * 1e-9 / static_cast<double>(waits.size() - 1)}};
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
  // Sum of the ideal times of all ranks over the sum of their step times.
  double ideal = 0;
  double total = 0;
  for (const DeviceReport& rank : report.ranks) {
    if (!rank.mfu) continue;
    double time = 0;
    for (const StepRecord& record : rank.records) {
      if (record.model_flops) time += record.step_seconds.value;
    }
    ideal += *rank.mfu * time;
    total += time;
  }
  if (total > 0) report.mfu = ideal / total;
  if (report.ranks.size() > 1) {
    note_ranks(report);
    find_straggler(report);
  }
  return report;
}

}  // namespace flopmeter
