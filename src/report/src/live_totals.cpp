// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/live_totals.h>

#include <algorithm>
#include <array>
#include <vector>

namespace flopmeter {
namespace {

constexpr std::int64_t block_steps = 10;
constexpr std::size_t most_buckets = 1000;

}  // namespace

void RecentSteps::add(const StepRecord& record) {
  if (record.time_unix < current_.last_unix) *this = {};  // the stream was written again
  if (current_.steps == block_steps) {
    previous_ = current_;
    current_ = {};
  }
  current_.add(record);
  since_start_.add(record);
}

StepTotals RecentSteps::totals() const {
  StepTotals totals = previous_;
  totals += current_;
  return totals;
}

LiveTotals::LiveTotals() : timeline(live_curves(), most_buckets) {}

void LiveTotals::add(const StepRecord& record) {
  if (record.tag != StepTag::train) return;
  timeline.add(record);
  ranks[record.rank].add(record);
}

StepTotals LiveTotals::all() const {
  std::vector<StepTotals> totals;
  totals.reserve(ranks.size());
  for (const auto& [rank, recent] : ranks) totals.push_back(recent.totals());
  return StepTotals::of_ranks(totals);
}

std::optional<StepTotals> LiveTotals::run() const {
  if (is_cut) return std::nullopt;
  std::vector<StepTotals> totals;
  totals.reserve(ranks.size());
  for (const auto& [rank, recent] : ranks) totals.push_back(recent.since_start());
  return StepTotals::of_ranks(totals);
}

std::span<const std::string_view> live_curves() {
  static constexpr std::array<std::string_view, 4> names = {
      "mfu", "tflops_per_device", "tokens_per_second", "step_seconds"};
  return names;
}

}  // namespace flopmeter
