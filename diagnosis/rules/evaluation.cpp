// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.10;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::evaluation);
  if (inquiry.share(Cause::evaluation) < least_share) return std::nullopt;
  Finding finding = finding_of(inquiry, "evaluation", lost, 0.9);
  finding.summary =
      "evaluation takes " + percent(inquiry.share(Cause::evaluation)) + " of the time";
  finding.evidence = duration({static_cast<double>(lost) / 1e9}) + " of " +
                     duration({static_cast<double>(inquiry.waterfall.total) / 1e9});
  finding.remedy = "evaluate on a fixed small subset during training, " +
                   std::to_string(static_cast<int>(inquiry.share(Cause::evaluation) / 0.02) + 1) +
                   " times less often, under torch.inference_mode() and with a larger batch";
  return finding;
}

StepRecord evaluated(double seconds) {
  StepRecord record;
  record.tag = StepTag::evaluation;
  record.step_seconds = {seconds};
  return record;
}

}  // namespace

extern const Rule evaluation_plugin;
constinit const Rule evaluation_plugin{
    .name = "evaluation",
    .help = "evaluating takes training time",
    .find = find,
    .fires =
        [] {
          return example_window({}, [](Evidence& window) { window.steps.push_back(evaluated(2)); });
        },
    .quiet =
        [] {
          return example_window({},
                                [](Evidence& window) { window.steps.push_back(evaluated(0.2)); });
        }};

}  // namespace flopmeter
