// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.15;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::loop);
  if (context.share(causes::loop) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "loop", save(context, causes::loop, lost), 0.7);
  finding.summary = "the loop's own code takes " + context.per_step_text(lost);
  const auto between =
      std::min(lost, static_cast<std::int64_t>(context.totals.inter_step_seconds * 1e9));
  finding.evidence = context.totals.device.steps > 0
                         ? "the device is idle while the host is in no phase and waits for nothing"
                         : duration(context.per_step(between)) + " between steps and " +
                               duration(context.per_step(lost - between)) +
                               " inside them, in no phase and without an operator";
  finding.recommendation =
      "log, print and read values (.item()) only every log interval; move work on metrics and "
      "files to another thread";
  return finding;
}

}  // namespace

extern constinit const Rule rule_loop{
    .name = "loop",
    .help = "code of the loop outside all phases takes part of the step",
    .cause = &causes::loop,
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::other, 0.03);
            record.inter_step_seconds = Seconds{0.03};
          });
        },
    .negative =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::other, 0.003);
            record.inter_step_seconds = Seconds{0.003};
          });
        }};

}  // namespace flopmeter
