// SPDX-License-Identifier: Apache-2.0
//
// flopmeter recount: a stored run under another convention.
#include "../command.h"
#include "../run_argument.h"

#include <flopmeter/analysis/recount.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/style.h>

#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string directory;
  std::string convention;
  bool json = false;
};

std::optional<WideInt> whole(const std::optional<Flops>& flops) {
  return flops ? std::optional{flops->value} : std::nullopt;
}

void write_figures(JsonWriter& json, std::string_view key, const RecomputedFigures& figures) {
  json.key(key).begin_object();
  json.field("model_flops", whole(figures.model_flops))
      .field("hardware_flops", whole(figures.hardware_flops))
      .field("mfu", figures.mfu)
      .field("hfu", figures.hfu);
  json.end_object();
}

void write(JsonWriter& json, const RecomputedRun& run) {
  json.begin_object()
      .field("schema", "flopmeter.recount/1")
      .field("model", run.model)
      .field("from", run.from)
      .field("convention", run.to);
  write_figures(json, "stored", run.stored);
  write_figures(json, "recounted", run.now);
  json.field("without_batch", run.without_batch)
      .field("differing", run.differing)
      .field("largest_difference", run.largest_difference);
  json.key("steps").begin_array();
  for (const RecomputedStep& step : run.steps) {
    json.begin_object()
        .field("step", step.step)
        .field("rank", step.rank)
        .field("tag", to_string(step.tag));
    write_figures(json, "stored", step.stored);
    write_figures(json, "recounted", step.now);
    json.end_object();
  }
  json.end_array().end_object();
}

std::string text_of(const RecomputedRun& run) {
  const auto flops = [](const std::optional<Flops>& value) {
    return value ? grouped(value->value) : std::string{"n/a"};
  };
  const auto ratio = [](std::optional<double> value) {
    return value ? percent(*value) : std::string{"n/a"};
  };
  Table table{"lrr"};
  table.row({"", run.from + " (stored)", run.to});
  table.row({"model FLOPs", flops(run.stored.model_flops), flops(run.now.model_flops)});
  table.row({"hardware FLOPs", flops(run.stored.hardware_flops), flops(run.now.hardware_flops)});
  table.row({"MFU", ratio(run.stored.mfu), ratio(run.now.mfu)});
  table.row({"HFU", ratio(run.stored.hfu), ratio(run.now.hfu)});
  std::string text = bold(printable(run.model)) + ", " + grouped(run.steps.size()) +
                     (run.steps.size() == 1 ? " record" : " records") +
                     "; sums over the train steps:\n" + table.text();
  if (run.without_batch > 0)
    text += "excluded, without a batch shape: " + grouped(run.without_batch) + " of the records\n";
  if (run.differing > 0) {
    text += "different from the configuration's FLOPs under " + run.from + ": " +
            grouped(run.differing) + " of the records, by up to " +
            percent(run.largest_difference) +
            "; the run was not exactly what the configuration describes\n";
  }
  return text;
}

Exit run(const Options& options) {
  const auto directory = run_argument(options.directory);
  if (!directory) return refuse(directory.error());
  const auto result = recompute(*directory, options.convention);
  if (!result) return refuse(result.error());
  if (options.json) return print_json([&](JsonWriter& json) { write(json, *result); });
  return print(text_of(*result));
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("dir", options->directory, "run directory")->required();
  app.add_option("--convention",
                 options->convention,
                 "FLOP-counting convention, see `flopmeter conventions`")
      ->required();
  app.add_flag("--json", options->json, "print JSON, per step");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_recount{
    .name = "recount",
    .help = "Recompute FLOPs and MFU of a stored run under another convention",
    .order = 8,
    .set_up = set_up};

}  // namespace flopmeter
