// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::pipeline_bubble);
  if (context.share(causes::pipeline_bubble) < least_share) return std::nullopt;
  const int stages = *context.evidence.pipeline_stages;
  const auto micro = context.totals.micro_batches / context.totals.steps;
  Finding finding =
      finding_of(context, "pipeline_bubble", save(context, causes::pipeline_bubble, lost), 0.6);
  finding.summary = "the pipeline's stages wait for each other: " + context.per_step_text(lost);
  finding.evidence =
      std::to_string(stages) + " stages and " + std::to_string(micro) +
      " micro-batches per step: a bubble of (stages - 1) / (micro-batches + stages - 1)";
  finding.recommendation = "raise the micro-batches per step from " + std::to_string(micro) +
                           " to " + std::to_string(8 * stages) + ", or interleave virtual stages";
  return finding;
}

Evidence four_stages(int micro_batches) {
  Evidence window = example_window([&](StepRecord& record) {
    record.micro_batches = micro_batches;
    prolong(record, Phase::forward, 0.05);
  });
  window.pipeline_stages = 4;
  return window;
}

}  // namespace

extern constinit const Rule rule_pipeline_bubble{
    .name = "pipeline_bubble",
    .help = "stages of a pipeline wait for each other at the start and end of a step",
    .cause = &causes::pipeline_bubble,
    .find = find,
    .fires = [] { return four_stages(4); },
    .negative = [] { return four_stages(400); }};

}  // namespace flopmeter
