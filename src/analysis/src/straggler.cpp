// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/straggler.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace flopmeter {
namespace {

constexpr double sigma_of_mad = 1.4826;  // of a normal distribution
constexpr std::size_t ranks_for_mad = 5;
constexpr double equal_within = 0.05;
constexpr std::size_t windows_for_history = 4;

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// The middle of a quantity over ranks, and how far from it is normal.
struct Middle {
  double value = 0;
  double deviation = 0;
  std::size_t ranks = 0;
};

Middle middle_of(const std::vector<double>& values) {
  Middle middle{.ranks = values.size()};
  if (values.empty()) return middle;
  middle.value = median(values);
  if (values.size() < ranks_for_mad) return middle;  // a MAD of two ranks is meaningless
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle.value));
  middle.deviation = sigma_of_mad * median(std::move(distances));
  return middle;
}

bool spreads(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least < *most * (1 - equal_within);
}

/// FLOPs per second outside collectives.
std::optional<double> speed_of(const RankWindow& window) {
  const double busy = window.seconds - window.waited.value_or(0);
  if (!window.flops || *window.flops <= 0 || !(busy > 0)) return std::nullopt;
  return *window.flops / busy;
}

/// All ranks in one window.
struct Column {
  std::vector<double> speeds, flops, seconds_a_step, communicated_a_step;
  bool all_waits = true;    ///< every rank's time in collectives is known
  bool speed_means = true;  ///< speeds can be compared
  Middle speed, seconds, communicated;

  void add(const RankWindow& window) {
    if (window.steps == 0) return;
    if (const auto speed_now = speed_of(window)) {
      speeds.push_back(*speed_now);
      flops.push_back(*window.flops / window.steps);
    }
    seconds_a_step.push_back(window.seconds / window.steps);
    if (window.communicated) communicated_a_step.push_back(*window.communicated / window.steps);
    all_waits = all_waits && window.waited;
  }
  void finish() {
    speed = middle_of(speeds);
    seconds = middle_of(seconds_a_step);
    communicated = middle_of(communicated_a_step);
    // Ranks in step, whose waits are not known: less work then looks like less speed.
    speed_means = speeds.size() > 1 && (all_waits || spreads(seconds_a_step) || !spreads(flops));
  }
};

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  [[nodiscard]] std::optional<double> value() const {
    return count_ > 0 ? std::optional{sum_ / count_} : std::nullopt;
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

/// By role and index.
using Columns = std::map<std::pair<int, std::int64_t>, Column>;

struct Judge {
  const Columns& columns;
  const StragglerOptions& options;

  [[nodiscard]] bool is_slow(const RankWindow& window, const Column& column) const {
    const auto speed = speed_of(window);
    if (!speed || !column.speed_means) return false;
    const double allowed =
        std::max(options.deviations * column.speed.deviation, options.floor * column.speed.value);
    return column.speed.value - *speed > allowed;
  }
  [[nodiscard]] static std::optional<double> lead(const RankWindow& window, const Column& column) {
    if (!window.communicated || column.communicated.ranks < 2) return std::nullopt;
    return column.communicated.value - *window.communicated / window.steps;
  }
  [[nodiscard]] bool is_late(const RankWindow& window, const Column& column) const {
    const auto less = lead(window, column);
    return less && *less > std::max(options.deviations * column.communicated.deviation,
                                    options.floor * column.seconds.value);
  }

  [[nodiscard]] RankScore score(const RankWindows& rank) const {
    RankScore score{.rank = rank.rank};
    const auto newest = static_cast<std::size_t>(options.of_windows);
    const std::size_t recent = std::min(rank.windows.size(), newest);
    Mean relative;
    Mean lead_now;
    for (std::size_t i = rank.windows.size() - recent; i < rank.windows.size(); ++i) {
      const RankWindow& window = rank.windows[i];
      const Column& column = columns.at({rank.role, window.index});
      if (window.steps == 0) continue;
      score.slow_windows += is_slow(window, column) ? 1 : 0;
      score.late_windows += is_late(window, column) ? 1 : 0;
      if (const auto less = lead(window, column)) lead_now.add(*less);
      if (const auto speed = speed_of(window); speed && column.speed_means)
        relative.add(*speed / column.speed.value);
    }
    score.relative = relative.value();
    score.lead = lead_now.value();
    score.historical = historical(rank, recent);
    if (score.slow_windows >= options.windows) {
      score.verdict = Verdict::slow;
    } else if (score.late_windows >= options.windows) {
      score.verdict = Verdict::late;
    }
    return score;
  }

  [[nodiscard]] static std::optional<double> historical(const RankWindows& rank,
                                                        std::size_t recent) {
    std::vector<double> before;
    for (std::size_t i = 0; i + recent < rank.windows.size(); ++i) {
      if (const auto speed = speed_of(rank.windows[i])) before.push_back(*speed);
    }
    if (before.size() < windows_for_history) return std::nullopt;
    const auto now = speed_of(rank.windows.back());
    return now ? std::optional{*now / median(std::move(before))} : std::nullopt;
  }
};

std::vector<std::string> missing_signals(std::span<const RankWindows> ranks,
                                         const Columns& columns) {
  std::vector<std::string> missing;
  if (ranks.size() < 2) {
    missing.emplace_back("a second rank: there is nothing to compare with");
    return missing;
  }
  std::set<int> roles;
  for (const RankWindows& rank : ranks) roles.insert(rank.role);
  if (roles.size() == ranks.size()) {
    missing.emplace_back(
        "a second rank with the same layers: stages of a pipeline do different work, or it is not "
        "known which ranks hold which");
    return missing;
  }
  bool flops = false;
  bool communication = false;
  bool hidden = false;
  for (const auto& [place, column] : columns) {
    flops = flops || column.speeds.size() > 1;
    communication = communication || column.communicated.ranks > 1;
    hidden = hidden || (column.speeds.size() > 1 && !column.speed_means);
  }
  if (!flops)
    missing.emplace_back("model_flops: without them, a rank with more work looks like a slow one");
  if (!communication)
    missing.emplace_back("time in collectives: without it, the last arriving rank is unknown");
  if (hidden)
    missing.emplace_back(
        "time in collectives: the ranks' steps take equally long for unequal work, so they wait "
        "for "
        "each other and their speeds cannot be compared");
  return missing;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::array<std::string_view, 5> names{"normal", "late", "slow", "behind", "missing"};
  return names[static_cast<std::size_t>(verdict)];
}

StragglerReport find_stragglers(std::span<const RankWindows> ranks,
                                const StragglerOptions& options) {
  Columns columns;
  for (const RankWindows& rank : ranks) {
    for (const RankWindow& window : rank.windows) columns[{rank.role, window.index}].add(window);
  }
  for (auto& [place, column] : columns) column.finish();
  StragglerReport report;
  report.missing_signals = missing_signals(ranks, columns);
  const Judge judge{columns, options};
  for (const RankWindows& rank : ranks) report.ranks.push_back(judge.score(rank));
  return report;
}

}  // namespace flopmeter
