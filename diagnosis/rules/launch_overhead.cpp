// SPDX-License-Identifier: Apache-2.0
#include "../src/eager_attention.h"
#include "../src/example_window.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.25;
constexpr double small_batch = 2048;  // tokens at once

/// What eight times the batch saves for each sample: launches, also those of the longer operators,
/// the optimizer and the loop are shared by more of them, and linears come near the best rate that
/// one of them reaches here, which is at most the peak.
std::int64_t saved_by_batch(const Inquiry& inquiry, std::int64_t launching) {
  const double fixed_costs = static_cast<double>(
      launching + inquiry.waterfall.lost(Cause::optimizer) + inquiry.waterfall.lost(Cause::loop));
  const OpTimes& ops = inquiry.ops;
  double matmuls = 0;
  if (ops.at_best > 0 && ops.priced > 0) {
    const double left = (ops.priced_launch / 8 + ops.at_best) / ops.priced;
    const auto slow = static_cast<double>(inquiry.waterfall.lost(Cause::small_matmuls));
    matmuls =
        std::clamp((slow + static_cast<double>(inquiry.waterfall.ideal)) * (1 - left), 0.0, slow);
  }
  const double moving = ops.memory > 0
                            ? static_cast<double>(inquiry.waterfall.lost(Cause::memory_bound)) *
                                  ops.memory_launch / ops.memory
                            : 0;
  return std::llround((fixed_costs + moving) * 7 / 8 + matmuls);
}

std::optional<Finding> find(const Inquiry& inquiry) {
  // What a loop over attention heads launches is that loop's fault.
  const auto eager = eager_attention(inquiry);
  const std::int64_t launching =
      inquiry.waterfall.lost(Cause::launch_overhead) - (eager ? eager->launching : 0);
  if (static_cast<double>(launching) < least_share * static_cast<double>(inquiry.waterfall.total))
    return std::nullopt;
  const double tokens = inquiry.tokens_at_once();
  const auto samples = inquiry.sums.samples / std::max<std::int64_t>(inquiry.sums.micro_steps, 1);
  const bool small = tokens > 0 && tokens < small_batch && samples > 0;
  Finding finding = finding_of(inquiry,
                               "launch_overhead",
                               small ? saved_by_batch(inquiry, launching) : launching,
                               small ? 0.6 : 0.8);
  finding.summary = "launching many small operators takes " + inquiry.a_step_text(launching);
  finding.evidence =
      grouped(static_cast<WideInt>(inquiry.ops.calls)) +
      " operators in forward and backward of a step, " +
      si(inquiry.ops.calls > 0 ? inquiry.ops.flops / inquiry.ops.calls : 0) + "FLOPs each" +
      (tokens > 0
           ? "; " + grouped(static_cast<WideInt>(tokens)) + " tokens go through the model at once"
           : "");
  finding.remedy = small ? "raise the batch from " + std::to_string(samples) + " to " +
                               std::to_string(samples * 8) + " or more; then torch.compile(model)"
                         : "torch.compile(model) makes few large operators of many small ones; or "
                           "CUDA graphs; and a larger batch";
  return finding;
}

Evidence launching(double seconds) {
  return example_window([&](StepRecord& record) { prolong(record, Phase::forward, seconds); },
                        [](Evidence& window) {
                          for (SurveyRow& row : window.surveys[0].rows) {
                            if (row.kind == OpKind::tiny) row.calls = 5000;
                          }
                        });
}

}  // namespace

extern const Rule launch_overhead_plugin;
constinit const Rule launch_overhead_plugin{
    .name = "launch_overhead",
    .help = "starting many small operators takes the time, not their work",
    .find = find,
    .fires = [] { return launching(0.08); },
    .quiet = [] { return launching(0.005); }};

}  // namespace flopmeter
