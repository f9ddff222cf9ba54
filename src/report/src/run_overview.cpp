// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/run_overview.h>

#include <algorithm>
#include <vector>

namespace flopmeter {
namespace {

constexpr std::array<std::string_view, 20> curves = {"mfu",
                                                     "hfu",
                                                     "tflops_per_device",
                                                     "tokens_per_second",
                                                     "samples_per_second",
                                                     "step_seconds",
                                                     "loss",
                                                     "tokens",
                                                     "memory_bytes.rss",
                                                     "memory_bytes.device",
                                                     "memory_bytes.device_reserved",
                                                     "phases.data",
                                                     "phases.forward",
                                                     "phases.backward",
                                                     "phases.optimizer",
                                                     "phases.communication",
                                                     "phases.checkpoint",
                                                     "phases.evaluation",
                                                     "phases.generation",
                                                     "phases.other"};

}  // namespace

void RankTotals::add(const StepRecord& record) {
  steps.add(record);
  if (record.tag != StepTag::train) return;
  const double start = record.time_unix - record.step_seconds.value;
  first_unix = std::min(first_unix.value_or(start), start);
  const auto peak = record.memory_device_peak_bytes ? record.memory_device_peak_bytes
                                                    : record.memory_rss_peak_bytes;
  if (peak) memory_peak_bytes = std::max(memory_peak_bytes.value_or(0), *peak);
  dropped_records = std::max(dropped_records, record.dropped_records);
}

double own_seconds(const StepTotals& totals) {
  const double waited = totals.phase(Phase::communication).value_or(0);
  return totals.steps == 0 ? 0 : (totals.seconds - waited) / static_cast<double>(totals.steps);
}

RunOverview::RunOverview(std::size_t most_buckets) : timeline(curves, most_buckets) {}

void RunOverview::add(const StepRecord& record) {
  ranks[record.rank].add(record);
  constexpr std::size_t most_stages = 32;
  if (!record.stage.empty() && record.rank == ranks.begin()->first) {
    const std::string name{record.stage};
    StepRecord of_any_kind = record;
    of_any_kind.tag = StepTag::train;
    if (stages.size() < most_stages || stages.contains(name)) stages[name].add(of_any_kind);
  }
  if (record.tag != StepTag::train) {
    constexpr std::size_t most_events = 500;
    if (record.rank == ranks.begin()->first)
      events.push_back({record.step, record.tag, record.time_unix, record.step_seconds.value});
    if (events.size() > most_events) events.pop_front();
    return;
  }
  timeline.add(record);
  sources[record.flops_source] += record.steps;
  if (record.attention_pairs != AttentionPairs::none) attention_pairs = record.attention_pairs;
}

StepTotals RunOverview::all() const {
  std::vector<StepTotals> totals;
  totals.reserve(ranks.size());
  for (const auto& [rank, each] : ranks) totals.push_back(each.steps);
  return StepTotals::of_ranks(totals);
}

std::set<int> RunOverview::silent_ranks() const {
  constexpr double least_seconds = 30;
  constexpr double least_steps = 10;
  double newest = 0;
  for (const auto& [rank, totals] : ranks) newest = std::max(newest, totals.steps.last_unix);
  std::set<int> silent;
  for (const auto& [rank, totals] : ranks) {
    const double step = totals.steps.step_seconds().value_or(Seconds{}).value;
    // Compared with the other ranks, not the clock: a finished run is not silent.
    if (newest - totals.steps.last_unix > std::max(least_seconds, least_steps * step))
      silent.insert(rank);
  }
  return silent;
}

}  // namespace flopmeter
