// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

/// Packed samples need fewer steps, which saves that part of everything in a step except loading.
WhatIf packed(const RuleContext& context) {
  const double padding = 1 - context.totals.token_share();
  const bool counted = std::any_of(
      context.evidence.steps.begin(), context.evidence.steps.end(), [](const StepRecord& record) {
        return record.flops_source == FlopsProvenance::counted ||
               record.flops_source == FlopsProvenance::calibrated;
      });
  WhatIf what_if{.useful_factor = counted ? 1 - padding : 1};
  for (const Cause& cause : {causes::optimizer,
                             causes::loop,
                             causes::communication,
                             causes::straggler,
                             causes::pipeline_bubble,
                             causes::busy_machine}) {
    what_if.saved.push_back(
        {cause, std::llround(static_cast<double>(context.budget.nanoseconds(cause)) * padding)});
  }
  what_if.saved.push_back({causes::padding, context.budget.nanoseconds(causes::padding)});
  if (counted) {
    const auto useful = static_cast<double>(context.budget.nanoseconds(causes::useful));
    what_if.saved.push_back({causes::useful, std::llround(useful * padding)});
  }
  return what_if;
}

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::padding);
  if (context.share(causes::padding) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "padding", packed(context), 0.95);
  finding.summary = percent(1 - context.totals.token_share()) +
                    " of the tokens are padding, and are computed like the others";
  finding.evidence = "real tokens are " + percent(context.totals.token_share()) +
                     " of those in the batches; work on the rest took " +
                     context.per_step_text(lost);
  finding.recommendation =
      "pack several samples into a sequence (packing=True, or variable-length attention with "
      "cu_seqlens), or batch samples of similar length (Trainer: "
      "train_sampling_strategy=\"group_by_length\", before transformers 5 group_by_length=True) "
      "and pad to the longest of the batch only";
  return finding;
}

}  // namespace

extern constinit const Rule rule_padding{.name = "padding",
                                         .help = "part of the batch is padding",
                                         .cause = &causes::padding,
                                         .find = find,
                                         .fires =
                                             [] {
                                               return example_window([](StepRecord& record) {
                                                 record.padded_tokens = 2 * *record.tokens;
                                               });
                                             },
                                         .negative =
                                             [] {
                                               return example_window([](StepRecord& record) {
                                                 record.padded_tokens = *record.tokens + 100;
                                               });
                                             }};

}  // namespace flopmeter
