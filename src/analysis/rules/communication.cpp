// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

/// Whether the ranks share one replica of the model: none averages gradients with another.
bool is_one_replica(const RuleContext& context) {
  if (context.evidence.steps.empty()) return false;
  const StepRecord& last = context.evidence.steps.back();
  return last.world_size > 1 && last.data_parallel == 1;
}

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::communication);
  if (context.share(causes::communication) < least_share) return std::nullopt;
  Finding finding =
      finding_of(context, "communication", save(context, causes::communication, lost), 0.9);
  finding.summary = "exposed communication takes " + context.per_step_text(lost);
  finding.evidence =
      "collectives take " +
      duration(context.per_step(lost + context.budget.nanoseconds(causes::straggler))) +
      " per step, " +
      (context.evidence.ranks.size() > 1
           ? duration(context.per_step(context.budget.nanoseconds(causes::straggler))) +
                 " of it waiting for a slower rank"
           : "which includes waiting for slower ranks: other ranks are not known");
  finding.recommendation =
      is_one_replica(context)
          ? "all ranks share one replica of the model: split it over fewer ranks, keep the ranks "
            "of "
            "tensor parallelism in one node, overlap its collectives with matmuls and the "
            "pipeline's transfers with other micro-batches, and check the interconnect"
          : "overlap it with backward (DistributedDataParallel does, with "
            "gradient_as_bucket_view=True and bucket_cap_mb=50..100), accumulate gradients over "
            "more micro-batches with no_sync(), send bf16 (bf16_compress_hook), and check the "
            "interconnect";
  return finding;
}

}  // namespace

extern constinit const Rule rule_communication{
    .name = "communication",
    .help = "exposed communication takes part of the step",
    .cause = &causes::communication,
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
