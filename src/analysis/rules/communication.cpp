// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.waterfall.lost(Cause::communication);
  if (context.share(Cause::communication) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "communication", lost, 0.9);
  finding.summary = "collectives that nothing hides: " + context.a_step_text(lost);
  finding.evidence =
      "in collectives " + duration(context.a_step(context.sums.communication)) + " a step, " +
      (context.evidence.ranks.size() > 1
           ? duration(context.a_step(Cause::straggler)) + " of it waiting for a slower rank"
           : "waiting for a slower rank included: other ranks were not seen");
  finding.recommendation =
      "overlap it with backward (DistributedDataParallel does, with gradient_as_bucket_view=True "
      "and bucket_cap_mb=50..100), accumulate gradients over more micro-batches with no_sync(), "
      "send bf16 (bf16_compress_hook), and check the interconnect";
  return finding;
}

}  // namespace

extern constinit const Rule rule_communication{
    .name = "communication",
    .help = "collectives that nothing hides take part of the step",
    .find = find,
    .fires =
        [] {
          return example_window(
              [](StepRecord& record) { prolong(record, Phase::communication, 0.02); });
        },
    .negative =
        [] {
          return example_window(
              [](StepRecord& record) { prolong(record, Phase::communication, 0.002); });
        }};

}  // namespace flopmeter
