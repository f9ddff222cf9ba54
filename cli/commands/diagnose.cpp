// SPDX-License-Identifier: Apache-2.0
//
// flopmeter diagnose: where the time of a run went, and what to do about it.
#include "../command.h"
#include "../progress_line.h"
#include "../run_argument.h"

#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/report/diagnosis_text.h>
#include <flopmeter/report/recorded_step.h>

#include <algorithm>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string directory;
  int rank = -1;
  std::int64_t steps = 0;  // 0: all
  std::optional<double> cost;
  bool json = false;
};

Exit run(Options options) {
  if (options.directory.empty()) options.directory = default_run_directory();
  const auto opened = run_argument(options.directory);
  if (!opened) return refuse(opened.error());
  const auto ranks = (*opened).ranks();
  if (options.rank >= 0 && !ranks.empty() &&
      std::find(ranks.begin(), ranks.end(), options.rank) == ranks.end()) {
    return refuse({ErrorCode::not_found,
                   "no records of rank " + std::to_string(options.rank) + " in " +
                       options.directory + ", which has " + std::to_string(ranks.size()) +
                       (ranks.size() == 1 ? " rank" : " ranks")});
  }
  EvidenceOptions wanted;
  if (options.rank >= 0) wanted.rank = options.rank;
  if (options.steps > 0) wanted.steps = static_cast<std::size_t>(options.steps);
  std::optional<ProgressLine> line{options.directory};
  wanted.progress = [&](double share) { line->show(share); };
  const auto diagnosis = diagnose_run(*opened, wanted);
  line.reset();
  if (!diagnosis) return refuse(diagnosis.error());
  std::optional<DeviceCost> cost;
  if (options.cost) {
    const auto& run = (*opened).metadata;
    cost = DeviceCost{.per_device_hour = *options.cost,
                      .devices = run.world_size.value_or(static_cast<int>(ranks.size())) *
                                 run.devices_per_rank.value_or(1)};
  }
  if (options.json)
    return print_json([&](JsonWriter& json) { write_json(json, *diagnosis, cost); });
  return print(diagnosis_text(*diagnosis, cost));
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option(
      "directory", o.directory, "a run directory (default: the latest run in logs/perf_monitor)");
  app.add_option("--rank", o.rank, "only this rank (default: all ranks)")
      ->check(check_not_negative);
  app.add_option("--steps", o.steps, "only this many newest records (default: the whole run)")
      ->check(check_positive_integer);
  app.add_option("--price-per-device-hour",
                 o.cost,
                 "price of one device hour, to show what lost time costs")
      ->check(check_positive_number);
  app.add_flag("--json", o.json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_diagnose{
    .name = "diagnose",
    .help = "Show where the time of a run went, why MFU is low, and what to do",
    .order = 6,
    .set_up = set_up};

}  // namespace flopmeter
