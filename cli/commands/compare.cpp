// SPDX-License-Identifier: Apache-2.0
//
// flopmeter compare: what changed between two runs, in MFU points by cause.
#include "../command.h"
#include "../diagnosis_text.h"
#include "../run_argument.h"

#include <flopmeter/analysis/run_evidence.h>

#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string before, after;
  bool json = false;
};

Result<Diagnosis> diagnosis_of(const std::string& directory) {
  const auto opened = run_argument(directory);
  if (!opened) return opened.error();
  const auto ranks = (*opened).ranks();
  if (ranks.empty()) return Error{ErrorCode::not_found, "no records in " + directory};
  auto diagnosis = diagnose(read_evidence(*opened, ranks.front()));
  if (!diagnosis)
    return Error{diagnosis.error().code, directory + ": " + diagnosis.error().message};
  return diagnosis;
}

Exit run(const Options& options) {
  const auto before = diagnosis_of(options.before);
  if (!before) return refuse(before.error());
  const auto after = diagnosis_of(options.after);
  if (!after) return refuse(after.error());
  if (!options.json) return print(comparison_text(*before, *after));
  return print_json([&](JsonWriter& json) {
    json.begin_object()
        .field("schema", "flopmeter.comparison/1")
        .field("mfu_before", (*before).waterfall.mfu)
        .field("mfu_after", (*after).waterfall.mfu);
    json.key("changes").begin_array();
    for (const Change& change : compare((*before).waterfall, (*after).waterfall)) {
      json.begin_object()
          .field("cause", to_string(change.cause))
          .field("mfu_points_before", change.before)
          .field("mfu_points_after", change.after)
          .field("mfu_change", change.mfu_change)
          .end_object();
    }
    json.end_array().end_object();
  });
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("before", options->before, "a run directory")->required();
  app.add_option("after", options->after, "another run directory")->required();
  app.add_flag("--json", options->json, "as JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_compare{
    .name = "compare",
    .help = "What changed between two runs, in MFU points by cause",
    .order = 7,
    .set_up = set_up};

}  // namespace flopmeter
