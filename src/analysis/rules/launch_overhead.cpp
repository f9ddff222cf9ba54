// SPDX-License-Identifier: Apache-2.0
#include "../src/eager_attention.h"
#include "../src/example_window.h"
#include "../src/linears.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.25;
constexpr double small_batch = 2048;  // tokens at once

/// What eight times the batch saves for each sample: the time between operators and what starts
/// them, the optimizer and the loop are shared by more of them, and the linears take less.
std::int64_t saved_by_batch(const RuleContext& context) {
  const OpTimes& ops = context.ops;
  const auto steps = static_cast<double>(context.sums.steps);
  const double launching = ops.between + ops.small;
  const double starts = launching > 0 ? (ops.between + ops.starting_small) / launching : 0;
  const double shared = static_cast<double>(context.with_padding(Cause::launch_overhead)) * starts +
                        ops.starting_others * 1e9 * steps +
                        static_cast<double>(context.waterfall.lost(Cause::optimizer) +
                                            context.waterfall.lost(Cause::loop));
  return std::llround(shared * 7 / 8 + saved_by_rows(context, 8) * 1e9 * steps);
}

std::optional<Finding> find(const RuleContext& context) {
  // What a loop over attention heads launches is that loop's fault.
  const auto eager = eager_attention(context);
  const std::int64_t launching =
      context.with_padding(Cause::launch_overhead) - (eager ? eager->launching : 0);
  if (static_cast<double>(launching) < least_share * static_cast<double>(context.waterfall.total))
    return std::nullopt;
  const double tokens = context.tokens_at_once();
  const auto samples = context.sums.samples / std::max<std::int64_t>(context.sums.micro_batches, 1);
  const bool small = tokens > 0 && tokens < small_batch && samples > 0;
  Finding finding = finding_of(
      context, "launch_overhead", small ? saved_by_batch(context) : launching, small ? 0.6 : 0.8);
  finding.summary = "launching many small operators takes " + context.a_step_text(launching);
  finding.evidence =
      grouped(static_cast<WideInt>(context.ops.calls)) +
      " operators in forward and backward of a step, " +
      grouped(
          static_cast<WideInt>(context.ops.calls > 0 ? context.ops.flops / context.ops.calls : 0)) +
      " FLOPs each, and " + duration({context.ops.between}) + " between them" +
      (tokens > 0
           ? "; " + grouped(static_cast<WideInt>(tokens)) + " tokens go through the model at once"
           : "");
  finding.recommendation = small ? "raise the batch from " + std::to_string(samples) + " to " +
                               std::to_string(samples * 8) + " or more; then torch.compile(model)"
                         : "torch.compile(model) makes few large operators of many small ones; or "
                           "CUDA graphs; and a larger batch";
  return finding;
}

Evidence launching(double seconds) {
  return example_window([&](StepRecord& record) { prolong(record, Phase::forward, seconds); },
                        [&](Evidence& window) {
                          window.profiles[0].gaps[0].count += 5000;
                          window.profiles[0].gaps[0].time.value += seconds;
                        });
}

}  // namespace

extern constinit const Rule rule_launch_overhead{
    .name = "launch_overhead",
    .help = "starting many small operators takes the time, not their work",
    .find = find,
    .fires = [] { return launching(0.08); },
    .negative = [] { return launching(0.005); }};

}  // namespace flopmeter
