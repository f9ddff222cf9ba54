// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/rank_comparison.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr std::int64_t warming_up = 3;  // first steps of a process
constexpr int default_window = 10;

int window_steps(const RunMetadata& run) {
  return std::max(1, run.log_interval.value_or(default_window));
}

}  // namespace

void RankComparison::add(const StepRecord& record) {
  if (record.tag != StepTag::train || record.process_step < warming_up) return;
  ranks_.try_emplace(record.rank, run_, record.rank, window_steps(run_)).first->second.add(record);
  if (steps_.size() >= kept_steps && record.step < steps_.begin()->first) return;
  const auto& waited = record.phases[static_cast<std::size_t>(Phase::communication)];
  steps_[record.step].emplace_back(
      record.rank,
      static_cast<float>((record.step_seconds - waited.value_or(Seconds{})).value / record.steps));
  if (steps_.size() > kept_steps) steps_.erase(steps_.begin());
}

std::vector<RankFigures> RankComparison::figures() const {
  if (ranks_.size() < 2) return {};
  std::vector<RankWindows> windows;
  windows.reserve(ranks_.size());
  const auto most =
      std::max<std::size_t>(1, kept_steps / static_cast<std::size_t>(window_steps(run_)));
  for (const auto& [rank, sums] : ranks_) {
    RankWindows& newest = windows.emplace_back(sums.windows());
    if (newest.windows.size() > most)
      newest.windows.erase(newest.windows.begin(),
                           newest.windows.end() - static_cast<std::ptrdiff_t>(most));
  }
  std::vector<RankFigures> figures = compare_ranks(windows);
  for (const auto& [number, work] : steps_) {
    if (work.size() != figures.size()) continue;  // not all ranks have it
    auto sorted = work;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      figures[i].work_seconds.push_back(static_cast<double>(sorted[i].second));
  }
  return figures;
}

}  // namespace flopmeter
