// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.15;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.waterfall.lost(Cause::loop);
  if (context.share(Cause::loop) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "loop", lost, 0.7);
  finding.summary = "the loop's own code takes " + context.a_step_text(lost);
  finding.evidence = duration(context.a_step(context.sums.between)) + " between steps and " +
                     duration(context.a_step(lost - context.sums.between)) +
                     " inside them, in no phase and without an operator at work";
  finding.recommendation =
      "log, print and read values (.item()) only every log interval; move work on metrics and "
      "files to another thread";
  return finding;
}

}  // namespace

extern constinit const Rule rule_loop{
    .name = "loop",
    .help = "code of the loop outside all phases takes part of the step",
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) { record.inter_step_seconds = Seconds{0.03}; });
        },
    .negative =
        [] {
          return example_window(
              [](StepRecord& record) { record.inter_step_seconds = Seconds{0.003}; });
        }};

}  // namespace flopmeter
