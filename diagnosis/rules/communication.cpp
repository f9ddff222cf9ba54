// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::communication);
  if (inquiry.share(Cause::communication) < least_share) return std::nullopt;
  Finding finding = finding_of(inquiry, "communication", lost, 0.9);
  finding.summary = "collectives that nothing hides: " + inquiry.a_step_text(lost);
  finding.evidence =
      "in collectives " + duration(inquiry.a_step(inquiry.sums.communication)) + " a step, " +
      (inquiry.evidence.ranks.size() > 1
           ? duration(inquiry.a_step(Cause::straggler)) + " of it waiting for a slower rank"
           : "waiting for a slower rank included: other ranks were not seen");
  finding.remedy =
      "overlap it with backward (DistributedDataParallel does, with gradient_as_bucket_view=True "
      "and bucket_cap_mb=50..100), accumulate gradients over more micro-batches with no_sync(), "
      "send bf16 (bf16_compress_hook), and check the interconnect";
  return finding;
}

}  // namespace

extern const Rule communication_plugin;
constinit const Rule communication_plugin{
    .name = "communication",
    .help = "collectives that nothing hides take part of the step",
    .find = find,
    .fires =
        [] {
          return example_window(
              [](StepRecord& record) { prolong(record, Phase::communication, 0.02); });
        },
    .quiet =
        [] {
          return example_window(
              [](StepRecord& record) { prolong(record, Phase::communication, 0.002); });
        }};

}  // namespace flopmeter
