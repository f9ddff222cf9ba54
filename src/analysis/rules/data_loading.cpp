// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::data_loading);
  if (context.share(causes::data_loading) < least_share) return std::nullopt;
  const bool sampled = context.totals.data_wait_samples >= 5;
  Finding finding = finding_of(
      context, "data_loading", save(context, causes::data_loading, lost), sampled ? 0.95 : 0.7);
  finding.summary = "the loop waits for data: " + context.per_step_text(lost);
  if (sampled) {
    finding.evidence =
        "while it waited, the process and its workers were idle in " +
        std::to_string(context.totals.data_wait_samples - context.totals.data_wait_busy_samples) +
        " of " + std::to_string(context.totals.data_wait_samples) + " samples: I/O, not CPU work";
  } else if (!context.evidence.device) {  // a trace has no samples
    finding.evidence = "too few samples show whether it waited for I/O or for the CPU";
  }
  // While one batch computes, the loader must fetch one: workers share the fetching.
  const auto fetch = context.totals.phase(Phase::data).value_or(0);
  const double rest = context.totals.seconds - fetch;
  const double needed = rest > 0 ? std::ceil(fetch / rest) + 1 : 1;
  const int workers =
      static_cast<int>(std::min<double>(context.evidence.processors.value_or(16), needed));
  finding.recommendation =
      "prefetch: DataLoader(num_workers=" + std::to_string(workers) +
      ", prefetch_factor=4, persistent_workers=True), or twice the workers it has; "
      "keep the data on a local disk or memory-map it";
  return finding;
}

}  // namespace

extern constinit const Rule rule_data_loading{
    .name = "data_loading",
    .help = "the loop waits for data while neither it nor a loader worker runs",
    .cause = &causes::data_loading,
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::data, 0.03);
            record.data_wait_samples = 2;
            record.data_wait_busy_samples = 0;
          });
        },
    .negative =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::data, 0.03);
            record.data_wait_samples = 2;
            record.data_wait_busy_samples = 2;
          });
        }};

}  // namespace flopmeter
