// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::pipeline_bubble);
  if (inquiry.share(Cause::pipeline_bubble) < least_share) return std::nullopt;
  const int stages = *inquiry.evidence.pipeline_stages;
  const auto micro = inquiry.sums.micro_steps / inquiry.sums.steps;
  Finding finding = finding_of(inquiry, "pipeline_bubble", lost, 0.6);
  finding.summary = "the pipeline's stages wait for each other: " + inquiry.a_step_text(lost);
  finding.evidence =
      std::to_string(stages) + " stages and " + std::to_string(micro) +
      " micro-batches a step: a bubble of (stages - 1) / (micro-batches + stages - 1)";
  finding.remedy = "raise the micro-batches a step from " + std::to_string(micro) + " to " +
                   std::to_string(8 * stages) + ", or interleave virtual stages";
  return finding;
}

Evidence four_stages(int micro_steps) {
  Evidence window = example_window([&](StepRecord& record) {
    record.micro_steps = micro_steps;
    prolong(record, Phase::forward, 0.05);
  });
  window.pipeline_stages = 4;
  return window;
}

}  // namespace

extern const Rule pipeline_bubble_plugin;
constinit const Rule pipeline_bubble_plugin{
    .name = "pipeline_bubble",
    .help = "stages of a pipeline wait for each other at the start and end of a step",
    .find = find,
    .fires = [] { return four_stages(4); },
    .quiet = [] { return four_stages(400); }};

}  // namespace flopmeter
