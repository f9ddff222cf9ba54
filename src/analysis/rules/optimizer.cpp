// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.15;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::optimizer);
  // If launching is the larger loss, its recommendation is the same: more work per step.
  if (context.share(causes::optimizer) < least_share ||
      context.budget.nanoseconds(causes::launch_overhead) > lost)
    return std::nullopt;
  // Its time does not grow with the batch: four times the batch leaves it a quarter of the share.
  Finding finding =
      finding_of(context, "optimizer", save(context, causes::optimizer, lost * 3 / 4), 0.7);
  finding.summary = "the optimizer takes " + context.per_step_text(lost);
  finding.evidence = "optimizer phase, " + std::to_string(context.totals.steps) + " steps";
  finding.recommendation =
      "accumulate gradients over 4 micro-batches, so that it runs a quarter as often; "
      "torch.optim.AdamW(..., fused=True); larger batches";
  return finding;
}

}  // namespace

extern constinit const Rule rule_optimizer{.name = "optimizer",
                                           .help = "the optimizer takes a large part of the step",
                                           .cause = &causes::optimizer,
                                           .find = find,
                                           .fires =
                                               [] {
                                                 return example_window([](StepRecord& record) {
                                                   prolong(record, Phase::optimizer, 0.03);
                                                 });
                                               },
                                           .negative =
                                               [] {
                                                 return example_window([](StepRecord& record) {
                                                   prolong(record, Phase::optimizer, 0.005);
                                                 });
                                               }};

}  // namespace flopmeter
