// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::cpu_bound);
  if (context.share(causes::cpu_bound) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "cpu_bound", save(context, causes::cpu_bound, lost), 0.9);
  finding.summary = "the loop waits for the CPU to prepare data: " + context.per_step_text(lost);
  finding.evidence = "while it waited, the process or a loader worker was running in " +
                     std::to_string(context.totals.data_wait_busy_samples) + " of " +
                     std::to_string(context.totals.data_wait_samples) +
                     " samples: CPU work, not I/O";
  const int free = context.evidence.processors.value_or(0) - 1;
  finding.recommendation =
      "prepare the data before training: store it tokenized, decoded, and augmented as far as "
      "possible; do the rest in loader workers, one for each processor that training leaves free" +
      (free > 0 ? " (DataLoader(num_workers=" + std::to_string(free) + ") at most)"
                : std::string{});
  return finding;
}

}  // namespace

extern constinit const Rule rule_cpu_bound{
    .name = "cpu_bound",
    .help = "the loop waits for data while it or a loader worker computes",
    .cause = &causes::cpu_bound,
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::data, 0.03);
            record.data_wait_samples = 2;
            record.data_wait_busy_samples = 2;
          });
        },
    .negative =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::data, 0.03);
            record.data_wait_samples = 2;
            record.data_wait_busy_samples = 0;
          });
        }};

}  // namespace flopmeter
