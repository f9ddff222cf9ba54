// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"
#include "../src/linears.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double few_tokens = 512;  // at once: rows of the matmuls
constexpr double least_share = 0.25;
constexpr double most_launch = 0.25;  // beyond it, launching is the cause

std::optional<Finding> find(const RuleContext& context) {
  const double tokens = context.tokens_at_once();
  const std::int64_t lost = context.waterfall.lost(Cause::small_matmuls);
  if (!(tokens > 0) || tokens >= few_tokens || context.share(Cause::small_matmuls) < least_share ||
      context.share(Cause::launch_overhead) >= most_launch)
    return std::nullopt;
  const auto samples = context.sums.samples / std::max<std::int64_t>(context.sums.micro_batches, 1);
  // Where it was not measured what more rows bring: weights are read once for all rows, so with
  // four times the rows a matmul bound by that reading takes as long as now.
  const double saved = saved_by_rows(context, 4) * 1e9 * static_cast<double>(context.sums.steps);
  Finding finding = saved > 0 ? finding_of(context, "batch_too_small", std::llround(saved), 0.8)
                              : finding_of(context, "batch_too_small", lost * 3 / 4, 0.5);
  finding.summary = "matmuls have few rows: " + grouped(static_cast<WideInt>(tokens)) +
                    " tokens go through the model at once";
  finding.evidence =
      "operators that bear FLOPs run " + context.a_step_text(lost) + " longer than at peak";
  finding.recommendation = "raise the micro-batch from " +
                   std::to_string(std::max<std::int64_t>(samples, 1)) + " to " +
                   std::to_string(4 * std::max<std::int64_t>(samples, 1)) +
                   " samples, as far as memory allows, with less gradient accumulation";
  return finding;
}

Evidence few_rows(std::int64_t tokens) {
  return example_window(
      [&](StepRecord& record) {
        record.samples = 1;
        record.tokens = tokens;
        prolong(record, Phase::backward, 0.06);
      },
      [](Evidence& window) { window.profiles[0].rows[0].self = {0.1}; });
}

}  // namespace

extern constinit const Rule rule_batch_too_small{
    .name = "batch_too_small",
    .help =
        "so few tokens go through the model at once that its matmuls are bound by reading weights",
    .find = find,
    .fires = [] { return few_rows(64); },
    .negative = [] { return few_rows(16384); }};

}  // namespace flopmeter
