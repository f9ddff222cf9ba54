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

std::optional<Finding> find(const Inquiry& inquiry) {
  const double tokens = inquiry.tokens_at_once();
  const std::int64_t lost = inquiry.waterfall.lost(Cause::small_matmuls);
  if (!(tokens > 0) || tokens >= few_tokens || inquiry.share(Cause::small_matmuls) < least_share ||
      inquiry.share(Cause::launch_overhead) >= most_launch)
    return std::nullopt;
  const auto samples = inquiry.sums.samples / std::max<std::int64_t>(inquiry.sums.micro_steps, 1);
  // Where it was not measured what more rows bring: weights are read once for all rows, so with
  // four times the rows a matmul bound by that reading takes as long as now.
  const double saved = saved_by_rows(inquiry, 4) * 1e9 * static_cast<double>(inquiry.sums.steps);
  Finding finding = saved > 0 ? finding_of(inquiry, "batch_too_small", std::llround(saved), 0.8)
                              : finding_of(inquiry, "batch_too_small", lost * 3 / 4, 0.5);
  finding.summary = "matmuls have few rows: " + grouped(static_cast<WideInt>(tokens)) +
                    " tokens go through the model at once";
  finding.evidence =
      "operators that bear FLOPs run " + inquiry.a_step_text(lost) + " longer than at peak";
  finding.remedy = "raise the micro-batch from " +
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
      [](Evidence& window) { window.surveys[0].rows[0].self = {0.1}; });
}

}  // namespace

extern const Rule batch_too_small_plugin;
constinit const Rule batch_too_small_plugin{
    .name = "batch_too_small",
    .help =
        "so few tokens go through the model at once that its matmuls are bound by reading weights",
    .find = find,
    .fires = [] { return few_rows(64); },
    .quiet = [] { return few_rows(16384); }};

}  // namespace flopmeter
