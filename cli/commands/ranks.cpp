// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a run, each and in total.
#include "../command.h"
#include "../run_argument.h"

#include <flopmeter/analysis/merge_json.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/style.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

namespace flopmeter {
namespace {

constexpr std::size_t most_rows = 12;  // with the world above them, a small screen

std::string text_or_unknown(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "n/a";
}

std::string seconds_text(double seconds) {
  return duration(Seconds{seconds});
}

/// Ranks with a verdict first, then the slowest.
std::vector<RankSummary> worst_first(const MergedRun& merged) {
  std::vector<RankSummary> ranks = merged.ranks;
  if (ranks.size() <= most_rows) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankSummary& a, const RankSummary& b) {
    if (a.score.verdict != b.score.verdict) return a.score.verdict > b.score.verdict;
    return a.score.relative.value_or(1) < b.score.relative.value_or(1);
  });
  ranks.resize(most_rows);
  return ranks;
}

template <class T>
T middle_of(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds of a mean step in a phase; 0 if no step has it.
double phase_seconds(const RankSummary& rank, std::size_t phase) {
  return rank.totals.phases[phase].value_or(0) / static_cast<double>(rank.totals.steps);
}

/// The median rank, with which the others are compared.
struct MiddleRank {
  std::array<double, phase_count> phases{};  ///< seconds per step
  std::int64_t last_step = 0;

  explicit MiddleRank(const std::vector<RankSummary>& ranks) {
    std::array<std::vector<double>, phase_count> seconds;
    std::vector<std::int64_t> steps;
    for (const RankSummary& rank : ranks) {
      if (rank.totals.steps == 0) continue;
      steps.push_back(*rank.last_step);
      for (std::size_t i = 0; i < phase_count; ++i) seconds[i].push_back(phase_seconds(rank, i));
    }
    if (steps.empty()) return;
    last_step = middle_of(std::move(steps));
    for (std::size_t i = 0; i < phase_count; ++i) phases[i] = middle_of(std::move(seconds[i]));
  }

  /// Phase with the largest excess over the median; empty if there is none.
  [[nodiscard]] std::string longest_phase(const RankSummary& rank) const {
    std::size_t longest = 0;
    double excess = 0;
    for (std::size_t i = 0; i < phase_count; ++i) {
      const double more = phase_seconds(rank, i) - phases[i];
      if (static_cast<Phase>(i) == Phase::communication || more <= excess) continue;
      longest = i;
      excess = more;
    }
    return excess > 0 ? ", " + seconds_text(excess) + " per step longer in " +
                            std::string{to_string(static_cast<Phase>(longest))}
                      : "";
  }
};

std::string verdict_text(const RankSummary& rank, const MiddleRank& middle) {
  switch (rank.score.verdict) {
    case Verdict::normal:
      return "";
    case Verdict::slow:
      return warning("slow: " + text_or_unknown(rank.score.relative, percent) +
                     " of the median speed" + middle.longest_phase(rank));
    case Verdict::late:
      return warning("late: other ranks wait " + text_or_unknown(rank.score.lead, seconds_text) +
                     " per step for it" + middle.longest_phase(rank));
    case Verdict::behind:
      return warning("behind: the median rank is at step " + std::to_string(middle.last_step));
    case Verdict::missing:
      return warning("missing: no records");
  }
  return "";
}

std::string rank_table(const MergedRun& merged) {
  const MiddleRank middle{merged.ranks};
  Table table{"rrrrrrl"};
  table.row({"rank", "steps", "last step", "step time", "MFU", "waiting", ""});
  for (const RankSummary& rank : worst_first(merged)) {
    const auto waited = rank.totals.phase_share(Phase::communication);
    const std::string waiting = waited ? percent(*waited) : "n/a";
    table.row({std::to_string(rank.rank),
               grouped(rank.totals.steps),
               rank.last_step ? grouped(*rank.last_step) : "n/a",
               rank.totals.steps > 0 ? duration(*rank.totals.step_seconds()) : "n/a",
               text_or_unknown(rank.totals.mfu(), percent),
               waiting,
               verdict_text(rank, middle)});
  }
  std::string text = table.text();
  if (merged.ranks.size() > most_rows)
    text += dim("  and " + std::to_string(merged.ranks.size() - most_rows) +
                " more; use --json for all\n");
  return text;
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < 16; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return ranks.size() > 16 ? text + ", …" : text;
}

std::string world_text(const MergedRun& merged) {
  const WorldTotals& totals = merged.totals;
  const auto flops = [](const std::optional<Flops>& value) {
    return value ? grouped(value->value) : std::string{"n/a"};
  };
  const auto count = [](const std::optional<std::int64_t>& value) {
    return value ? grouped(*value) : std::string{"n/a"};
  };
  const bool whole = totals.complete_steps > 0;
  Table table{"ll"};
  table.row({"ranks", std::to_string(merged.world_size)});
  table.row({"steps",
             grouped(totals.complete_steps) + " complete, " + grouped(totals.incomplete_steps) +
                 " incomplete"});
  table.row({"MFU", text_or_unknown(merged.world.mfu(), percent)});
  table.row({whole ? "model FLOPs" : "model FLOPs (reported ranks)",
             flops(whole ? totals.model_flops : totals.reported_model_flops)});
  table.row({whole ? "hardware FLOPs" : "hardware FLOPs (reported ranks)",
             flops(whole ? totals.hardware_flops : totals.reported_hardware_flops)});
  table.row({"tokens", count(totals.tokens)});
  const auto rate = merged.world.tokens_per_second();
  table.row({"tokens/s", rate ? grouped(std::llround(*rate)) : "n/a"});
  for (std::size_t i = 1; i < merged.starts.size(); ++i)
    table.row({"restart",
               merged.starts[i].stamp + " with " + std::to_string(merged.starts[i].world_size) +
                   " ranks"});
  if (!merged.missing.empty()) table.row({"missing", warning(list_of(merged.missing))});
  if (!merged.behind.empty()) table.row({"behind", warning(list_of(merged.behind))});
  std::vector<int> slow;
  for (const RankSummary& rank : merged.ranks) {
    if (rank.score.verdict == Verdict::slow || rank.score.verdict == Verdict::late)
      slow.push_back(rank.rank);
  }
  if (!slow.empty()) table.row({"slow or late", warning(list_of(slow))});
  for (const std::string& signal : merged.missing_signals) table.row({"unknown", signal});
  for (const std::string& note : merged.notes) table.row({"note", note});
  return table.text();
}

std::function<Exit()> set_up(Arguments& app) {
  struct Arguments {
    std::string directory;
    int window = 0;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("directory", arguments->directory, "run directory")->required();
  app.add_option("--window", arguments->window, "steps per window (default: the log interval)")
      ->check(check_positive_integer);
  app.add_flag("--json", arguments->json, "print JSON");
  return [arguments]() -> Exit {
    const auto run = run_argument(arguments->directory);
    if (!run) return refuse(run.error());
    const MergedRun merged = merge_ranks(*run, {.window_steps = arguments->window});
    if (arguments->json) return print_json([&](JsonWriter& json) { write_json(json, merged); });
    return print(bold("World") + "\n" + world_text(merged) + "\n" + bold("Ranks") + "\n" +
                 rank_table(merged));
  };
}

}  // namespace

extern constinit const Command command_ranks{
    .name = "ranks",
    .help = "Merge all ranks of a run; find stragglers and missing ranks",
    .order = 40,
    .set_up = set_up};

}  // namespace flopmeter
