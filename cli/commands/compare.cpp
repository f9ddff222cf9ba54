// SPDX-License-Identifier: Apache-2.0
//
// flopmeter compare: what changed between two runs, in time per step and per token by cause.
#include "../command.h"
#include "../run_argument.h"
#include "../trace_diagnosis.h"

#include <flopmeter/report/diagnosis_text.h>
#include <flopmeter/report/recorded_step.h>

#include <filesystem>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string before, after;
  bool json = false;
};

/// Of a run directory or a trace.
Result<Diagnosis> diagnosis_of(const std::string& directory) {
  if (std::filesystem::is_regular_file(directory)) {
    auto diagnosis = diagnose_trace_file(directory);
    if (!diagnosis) return Error{ErrorCode::io_error, diagnosis.error().text()};
    return diagnosis;
  }
  const auto opened = run_argument(directory);
  if (!opened) return opened.error();
  return diagnose_run(*opened);
}

/// One run with its budget per step and per token.
void write_run(JsonWriter& json, std::string_view name, const Diagnosis& diagnosis) {
  const StepTotals& totals = diagnosis.totals;
  const auto steps = static_cast<double>(totals.steps);
  const auto tokens = static_cast<double>(totals.tokens.amount);
  json.key(name)
      .begin_object()
      .field("mfu", diagnosis.mfu())
      .field("peak", diagnosis.peak)
      .field("steps", totals.steps)
      .field("step_seconds", totals.step_seconds())
      .field("tokens",
             totals.tokens.seconds > 0 ? std::optional{totals.tokens.amount} : std::nullopt)
      .field("tokens_per_second", totals.tokens_per_second());
  json.key("budget").begin_array();
  for (const BudgetLine& line : diagnosis.budget.lines) {
    const double seconds = diagnosis.budget.seconds(line.cause);
    json.begin_object()
        .field("cause", line.cause.id)
        .field("seconds_per_step", seconds / steps)
        .field("seconds_per_token", tokens > 0 ? std::optional{seconds / tokens} : std::nullopt)
        .field("share", diagnosis.budget.share(line.cause))
        .end_object();
  }
  json.end_array().end_object();
}

Exit run(const Options& options) {
  const auto before = diagnosis_of(options.before);
  if (!before) return refuse(before.error());
  const auto after = diagnosis_of(options.after);
  if (!after) return refuse(after.error());
  if (!options.json) return print(comparison_text(*before, *after));
  return print_json([&](JsonWriter& json) {
    json.begin_object()
        .field("schema", "flopmeter.comparison/2")
        .field("mfu_before", (*before).mfu())
        .field("mfu_after", (*after).mfu());
    write_run(json, "before", *before);
    write_run(json, "after", *after);
    json.key("changes").begin_array();
    for (const Change& change : compare(*before, *after)) {
      json.begin_object()
          .field("cause", change.cause.id)
          .field("seconds_per_step_before", change.before)
          .field("seconds_per_step_after", change.after)
          .field("seconds_per_step_change", change.difference())
          .end_object();
    }
    json.end_array().end_object();
  });
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("before", options->before, "a run directory or a profiler trace")->required();
  app.add_option("after", options->after, "the run directory or trace to compare with it")
      ->required();
  app.add_flag("--json", options->json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_compare{
    .name = "compare",
    .help = "Show what changed between two runs, in time per step by cause",
    .order = 7,
    .set_up = set_up};

}  // namespace flopmeter
