// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.waterfall.lost(Cause::data_loading);
  if (context.share(Cause::data_loading) < least_share) return std::nullopt;
  const bool told = context.sums.data_wait_samples >= 5;
  Finding finding = finding_of(context, "data_loading", lost, told ? 0.95 : 0.7);
  finding.summary = "the loop waits for data: " + context.a_step_text(lost);
  finding.evidence =
      told ? "while it waited, the process and its workers were idle in " +
                 std::to_string(context.sums.data_wait_samples - context.sums.data_wait_busy_samples) + " of " +
                 std::to_string(context.sums.data_wait_samples) + " looks: I/O, not CPU"
           : "whether it waited for I/O or for the CPU was not seen";
  // While one batch computes, the loader must fetch one: workers share the fetching.
  const auto fetch = static_cast<double>(context.sums.data);
  const double rest = static_cast<double>(context.waterfall.total) - fetch;
  const int most = context.evidence.processors.value_or(16);
  const int workers = static_cast<int>(std::min<double>(most, std::ceil(fetch / rest) + 1));
  finding.recommendation = "load ahead: DataLoader(num_workers=" + std::to_string(workers) +
                   ", prefetch_factor=4, persistent_workers=True), or twice the workers it has; "
                   "keep the data on a local disk or memory-map it";
  return finding;
}

}  // namespace

extern constinit const Rule rule_data_loading{
    .name = "data_loading",
    .help = "the loop waits for data while neither it nor a loader worker runs",
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
