// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/rank_windows.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr std::size_t kept_windows = 64;  // enough for a rank's history

}  // namespace

WindowSums::WindowSums(const RunMetadata& run, int rank, int window_steps)
    : rank_(rank), role_(run.role(rank)), window_steps_(window_steps) {}

void WindowSums::add(const StepRecord& record) {
  const std::int64_t index = record.step / window_steps_;
  const auto [at, fresh] = windows_.try_emplace(index);
  RankWindow& window = at->second;
  window.index = index;
  window.steps += record.steps;
  window.seconds += record.step_seconds.value;
  // A window has only the values that all its steps have.
  const auto sum = [fresh = fresh](std::optional<double>& total, std::optional<double> part) {
    total = part && (fresh || total) ? std::optional{total.value_or(0) + *part} : std::nullopt;
  };
  const auto& waited = record.phases[static_cast<std::size_t>(Phase::communication)];
  const double hidden = record.overlapped_communication.value_or(Seconds{}).value;
  sum(window.flops,
      record.model_flops ? std::optional{static_cast<double>(record.model_flops->value)}
                         : std::nullopt);
  sum(window.waited, waited ? std::optional{waited->value} : std::nullopt);
  sum(window.communicated, waited ? std::optional{waited->value + hidden} : std::nullopt);
  // Streams are read newest first: a window may come after newer ones.
  if (windows_.size() > 2 * kept_windows) windows_.erase(windows_.begin());
}

RankWindows WindowSums::windows() const {
  RankWindows newest{.rank = rank_, .role = role_};
  const std::size_t left_out = windows_.size() - std::min(windows_.size(), kept_windows);
  auto window = windows_.begin();
  std::advance(window, left_out);
  for (; window != windows_.end(); ++window) newest.windows.push_back(window->second);
  return newest;
}

}  // namespace flopmeter
