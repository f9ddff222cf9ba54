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
constexpr double most_launch = 0.25;  // above it, launching is the cause

std::optional<Finding> find(const RuleContext& context) {
  const double tokens = context.tokens_at_once();
  const std::int64_t lost = context.budget.nanoseconds(causes::matmul_inefficiency);
  if (!(tokens > 0) || tokens >= few_tokens ||
      context.share(causes::matmul_inefficiency) < least_share ||
      context.share(causes::launch_overhead) >= most_launch)
    return std::nullopt;
  const std::int64_t samples = context.samples_at_once();
  // Without measured rates: weights are read once for all rows, so with four times the rows a
  // matmul that is bound by reading them takes as long as now.
  const std::int64_t measured = context.all_steps(saved_by_rows(context, 4));
  const std::int64_t saved = measured > 0 ? measured : lost * 3 / 4;
  Finding finding = finding_of(context,
                               "batch_too_small",
                               save(context, causes::matmul_inefficiency, saved),
                               measured > 0 ? 0.8 : 0.5);
  finding.summary = "matmuls have few rows: " + grouped(static_cast<WideInt>(tokens)) +
                    " tokens go through the model at once";
  finding.evidence = "matmuls take " + context.per_step_text(lost) + " longer than at peak";
  finding.recommendation = "raise the micro-batch from " + std::to_string(samples) + " to " +
                           std::to_string(4 * samples) +
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
    .help = "each micro-batch has so few tokens that reading the weights limits the matmuls",
    .cause = &causes::matmul_inefficiency,
    .find = find,
    .fires = [] { return few_rows(64); },
    .negative = [] { return few_rows(16384); }};

}  // namespace flopmeter
