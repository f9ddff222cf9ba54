// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.15;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::optimizer);
  // Where launching is the larger loss, its remedy is the same: more work a step.
  if (inquiry.share(Cause::optimizer) < least_share ||
      inquiry.waterfall.lost(Cause::launch_overhead) > lost)
    return std::nullopt;
  // Its time does not grow with the batch: four times the batch leaves it a quarter of the share.
  Finding finding = finding_of(inquiry, "optimizer", lost * 3 / 4, 0.7);
  finding.summary = "the optimizer takes " + inquiry.a_step_text(lost);
  finding.evidence = "optimizer phase, " + std::to_string(inquiry.sums.steps) + " steps";
  finding.remedy =
      "accumulate gradients over 4 micro-batches, so that it runs a quarter as often; "
      "torch.optim.AdamW(..., fused=True); larger batches";
  return finding;
}

}  // namespace

extern const Rule optimizer_plugin;
constinit const Rule optimizer_plugin{.name = "optimizer",
                                      .help = "the optimizer takes a large part of the step",
                                      .find = find,
                                      .fires =
                                          [] {
                                            return example_window([](StepRecord& record) {
                                              prolong(record, Phase::optimizer, 0.03);
                                            });
                                          },
                                      .quiet =
                                          [] {
                                            return example_window([](StepRecord& record) {
                                              prolong(record, Phase::optimizer, 0.005);
                                            });
                                          }};

}  // namespace flopmeter
