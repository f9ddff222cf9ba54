// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.10;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.waterfall.lost(Cause::evaluation);
  if (context.share(Cause::evaluation) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "evaluation", lost, 0.9);
  finding.summary =
      "evaluation takes " + percent(context.share(Cause::evaluation)) + " of the time";
  finding.evidence = duration({static_cast<double>(lost) / 1e9}) + " of " +
                     duration({static_cast<double>(context.waterfall.total) / 1e9});
  finding.recommendation = "evaluate on a fixed small subset during training, " +
                   std::to_string(static_cast<int>(context.share(Cause::evaluation) / 0.02) + 1) +
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

extern constinit const Rule rule_evaluation{
    .name = "evaluation",
    .help = "evaluating takes training time",
    .find = find,
    .fires =
        [] {
          return example_window({}, [](Evidence& window) { window.steps.push_back(evaluated(2)); });
        },
    .negative =
        [] {
          return example_window({},
                                [](Evidence& window) { window.steps.push_back(evaluated(0.2)); });
        }};

}  // namespace flopmeter
