// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a run side by side, and the world they make.
#include "../command.h"
#include "../style.h"

#include <flopmeter/core/text.h>
#include <flopmeter/runs/merge_json.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace flopmeter {
namespace {

constexpr std::size_t most_rows = 40;

std::string text_or_unknown(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "n/a";
}

std::string seconds_text(double seconds) {
  return duration(Seconds{seconds});
}

/// What concerns people first: verdicts, then the slowest.
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

std::string verdict_text(const RankScore& score) {
  switch (score.verdict) {
    case Verdict::normal:
      return "";
    case Verdict::slow:
      return warning("slow: " + text_or_unknown(score.relative, percent) +
                     " of the middle rank's speed");
    case Verdict::late:
      return warning("late: the others wait " + text_or_unknown(score.lead, seconds_text) +
                     " a step for it");
    case Verdict::behind:
      return warning("behind");
    case Verdict::missing:
      return warning("missing");
  }
  return "";
}

std::string rank_table(const MergedRun& merged) {
  Table table{"rrrrrrl"};
  table.row({"rank", "steps", "last step", "step time", "MFU", "waiting", ""});
  for (const RankSummary& rank : worst_first(merged)) {
    std::optional<double> share;
    if (rank.waited_seconds && rank.seconds > 0) share = *rank.waited_seconds / rank.seconds;
    table.row(
        {std::to_string(rank.rank),
         std::to_string(rank.steps),
         rank.last_step ? std::to_string(*rank.last_step) : "n/a",
         rank.steps > 0 ? seconds_text(rank.seconds / static_cast<double>(rank.steps)) : "n/a",
         text_or_unknown(rank.mfu, percent),
         text_or_unknown(share, percent),
         verdict_text(rank.score)});
  }
  std::string text = table.text();
  if (merged.ranks.size() > most_rows)
    text +=
        dim("  and " + std::to_string(merged.ranks.size() - most_rows) + " more; --json has all\n");
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
                 " without some ranks"});
  table.row({"MFU", text_or_unknown(totals.mfu, percent)});
  table.row({whole ? "model FLOPs" : "model FLOPs of those that wrote",
             flops(whole ? totals.model_flops : totals.reported_model_flops)});
  table.row({whole ? "hardware FLOPs" : "hardware FLOPs of those that wrote",
             flops(whole ? totals.hardware_flops : totals.reported_hardware_flops)});
  table.row({"tokens", count(totals.tokens)});
  table.row({"tokens/s", text_or_unknown(totals.tokens_per_second, si)});
  for (std::size_t i = 1; i < merged.starts.size(); ++i)
    table.row({"restart",
               merged.starts[i].stamp + " with " + std::to_string(merged.starts[i].world_size) +
                   " ranks"});
  if (!merged.missing.empty()) table.row({"missing", warning(list_of(merged.missing))});
  if (!merged.behind.empty()) table.row({"behind", warning(list_of(merged.behind))});
  for (const std::string& signal : merged.missing_signals) table.row({"not known", signal});
  for (const std::string& note : merged.notes) table.row({"note", note});
  return table.text();
}

std::function<Exit()> set_up(CLI::App& app) {
  struct Arguments {
    std::string directory;
    int window = 0;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("directory", arguments->directory, "run directory")->required();
  app.add_option(
         "--window", arguments->window, "steps that are judged together; else the log interval")
      ->check(check_positive_integer);
  app.add_flag("--json", arguments->json, "as JSON");
  return [arguments]() -> Exit {
    const auto run = open_run(arguments->directory);
    if (!run) return refuse(run.error());
    const MergedRun merged = merge_ranks(*run, {.window_steps = arguments->window});
    if (arguments->json) return print_json([&](JsonWriter& json) { write_json(json, merged); });
    return print(bold("World") + "\n" + world_text(merged) + "\n" + bold("Ranks") + "\n" +
                 rank_table(merged));
  };
}

}  // namespace

extern const Command ranks_plugin;
constinit const Command ranks_plugin{
    .name = "ranks",
    .help = "All ranks of a run: totals of the world, the slow and the missing",
    .order = 40,
    .set_up = set_up};

}  // namespace flopmeter
