// SPDX-License-Identifier: Apache-2.0
//
// flopmeter diagnose: where every MFU point of a run went, and what to do about it.
#include "../command.h"
#include "../diagnosis_text.h"
#include "../run_argument.h"

#include <flopmeter/analysis/run_evidence.h>

#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string directory;
  int rank = -1;
  std::int64_t steps = 1000;
  std::optional<double> price;
  bool json = false;
};

Exit run(const Options& options) {
  const auto opened = run_argument(options.directory);
  if (!opened) return refuse(opened.error());
  const auto ranks = (*opened).ranks();
  if (ranks.empty()) {
    return refuse(
        {ErrorCode::not_found,
         "no records in " + options.directory + ": is it the run directory of a monitor?"});
  }
  const int rank = options.rank >= 0 ? options.rank : ranks.front();
  const auto diagnosis =
      diagnose(read_evidence(*opened, rank, static_cast<std::size_t>(options.steps)));
  if (!diagnosis) return refuse(diagnosis.error());
  std::optional<Price> price;
  if (options.price) {
    const auto& run = (*opened).description;
    price = Price{.per_device_hour = *options.price,
                  .devices = run.world_size.value_or(static_cast<int>(ranks.size())) *
                             run.devices_per_rank.value_or(1)};
  }
  if (options.json)
    return print_json([&](JsonWriter& json) { write_json(json, *diagnosis, price); });
  return print(diagnosis_text(*diagnosis, price));
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("directory", o.directory, "a run directory")->required();
  app.add_option("--rank", o.rank, "the rank to look at (the lowest one)")
      ->check(check_not_negative);
  app.add_option("--steps", o.steps, "how many of the newest records")
      ->check(check_positive_integer)
      ->capture_default_str();
  app.add_option("--price-per-device-hour", o.price, "what a device costs, for what the loss costs")
      ->check(check_positive_number);
  app.add_flag("--json", o.json, "as JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_diagnose{
    .name = "diagnose",
    .help = "Why a run's MFU is low: losses in MFU points, causes and recommendations",
    .order = 6,
    .set_up = set_up};

}  // namespace flopmeter
