// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <cmath>

namespace flopmeter {
namespace {

constexpr double tolerance = 0.02;

std::optional<Finding> find(const RuleContext& context) {
  WideInt counted = 0;
  WideInt estimated = 0;
  for (const StepRecord& record : context.evidence.steps) {
    if (!record.estimated_flops || !record.model_flops) continue;
    if (record.flops_source != FlopsProvenance::counted && !record.counted_flops) continue;
    counted += record.counted_flops.value_or(*record.model_flops).value;
    estimated += record.estimated_flops->value;
  }
  if (estimated <= 0) return std::nullopt;
  const double error = static_cast<double>(counted) / static_cast<double>(estimated) - 1;
  if (std::abs(error) <= tolerance) return std::nullopt;
  Finding finding;
  finding.rule = "estimate_disagrees";
  finding.confidence = 0.9;
  finding.summary = "counted FLOPs are " + percent(std::abs(error)) +
                    (error > 0 ? " more than" : " less than") +
                    " the estimate from the model configuration";
  finding.evidence =
      "counted " + grouped(counted) + ", estimated " + grouped(estimated) + " in the same steps";
  finding.recommendation =
      error > 0 ? "look for work that the configuration does not describe: padding, eager "
                  "attention over masked pairs, extra heads or losses, a reference or reward "
                  "model in the step"
                : "look for work that bypasses the dispatcher (custom kernels: "
                  "flopmeter.register_op) or layers that are frozen or skipped";
  return finding;
}

}  // namespace

extern constinit const Rule rule_estimate_disagrees{
    .name = "estimate_disagrees",
    .help = "counted and estimated FLOPs differ by more than 2 %",
    .find = find,
    .fires =
        [] {
          return example_window(
              [](StepRecord& record) { record.estimated_flops = Flops{45'000'000'000}; });
        },
    .negative =
        [] {
          return example_window(
              [](StepRecord& record) { record.estimated_flops = Flops{50'500'000'000}; });
        }};

}  // namespace flopmeter
