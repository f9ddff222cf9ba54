// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.10;

std::optional<Finding> find(const RuleContext& context) {
  const auto evaluated = context.totals.other_tags.find(StepTag::evaluation);
  if (evaluated == context.totals.other_tags.end()) return std::nullopt;
  const double seconds = evaluated->second.seconds;
  Finding finding = out_of_step_finding(context, "evaluation", seconds, 0.9);
  if (*finding.share < least_share) return std::nullopt;
  finding.summary = "evaluation takes " + percent(*finding.share) + " of the run";
  finding.evidence = duration({seconds}) + " of evaluation and " +
                     duration({context.totals.seconds}) + " of train steps";
  finding.recommendation =
      "evaluate on a fixed small subset during training, " +
      std::to_string(static_cast<int>(*finding.share / 0.02) + 1) +
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
