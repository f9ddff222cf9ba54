// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.waterfall.lost(Cause::padding);
  if (context.share(Cause::padding) < least_share) return std::nullopt;
  // Packed, the same samples are in fewer steps: whatever a step costs is saved with it, except the
  // samples' own loading.
  const Sums& sums = context.sums;
  const auto steps =
      static_cast<double>(context.waterfall.total - sums.data - sums.checkpoint - sums.evaluation);
  Finding finding =
      finding_of(context, "padding", std::llround(steps * (1 - sums.useful_share)), 0.95);
  finding.summary = percent(1 - context.sums.useful_share) +
                    " of the tokens are padding, and are computed like the others";
  finding.evidence = "real tokens are " + percent(context.sums.useful_share) +
                     " of those in the batches; work on the rest took " + context.a_step_text(lost);
  finding.recommendation =
      "pack several samples into a sequence (packing=True, or variable-length attention with "
      "cu_seqlens), or batch samples of like length (Trainer: "
      "train_sampling_strategy=\"group_by_length\", before transformers 5 group_by_length=True) "
      "and pad to the longest of the batch only";
  return finding;
}

}  // namespace

extern constinit const Rule rule_padding{.name = "padding",
                                    .help = "part of the batch is padding",
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
