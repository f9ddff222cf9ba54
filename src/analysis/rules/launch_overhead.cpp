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
constexpr double least_idle_share = 0.1;  // of a device, which is measured
constexpr double small_batch = 2048;      // tokens at once

constexpr std::int64_t larger = 8;  // times the batch
/// Larger tensors push the host's code and data out of the caches of a CPU: with eight times the
/// batch a step's launches, loop, and optimizer took 1.3 to 2.2 times as long.
constexpr double colder = 1.5;

/// Time that fewer launches save on a device, if `launching` takes no time or if a larger batch
/// shares it.  The host then gets ahead of the device, which does not wait for data and for the
/// loop's code either, unless these take longer than the work of the device.
std::int64_t saved_on_device(const RuleContext& context, std::int64_t launching, bool by_batch) {
  const TimeBudget& budget = context.budget;
  const std::int64_t data =
      budget.nanoseconds(causes::data_loading) + budget.nanoseconds(causes::cpu_bound);
  const std::int64_t waiting = data + budget.nanoseconds(causes::loop);
  const std::int64_t working = budget.total - launching - waiting;
  if (!by_batch) return budget.total - std::max(working, waiting);
  const std::int64_t optimizer = budget.nanoseconds(causes::optimizer);
  const std::int64_t faster = context.all_steps(saved_by_rows(context, larger));
  const std::int64_t device = working - faster - optimizer + optimizer / larger;
  const std::int64_t host = data + (budget.total - data) / larger;
  return budget.total - std::max(device, host);
}

/// Time that a larger batch saves per sample: more samples share launches, optimizer, and loop
/// code, and linear layers are more efficient.
std::int64_t saved_by_batch(const RuleContext& context) {
  const OpTimes& ops = context.ops;
  const double launching = ops.between + ops.small;
  // All time that a device waits for launches is shared.
  const double starts = launching > 0 ? (ops.between + ops.starting_small) / launching : 1;
  const double shared =
      static_cast<double>(context.with_padding(causes::launch_overhead)) * starts +
      static_cast<double>(context.all_steps(ops.starting_others)) +
      static_cast<double>(context.budget.nanoseconds(causes::optimizer) +
                          context.budget.nanoseconds(causes::loop));
  return std::llround(shared * (1 - colder / larger)) +
         context.all_steps(saved_by_rows(context, larger));
}

std::optional<Finding> find(const RuleContext& context) {
  // Operators that a loop over attention heads launches belong to rule poor_implementation.
  const auto eager = eager_attention(context);
  const std::int64_t launching =
      context.with_padding(causes::launch_overhead) - (eager ? eager->launching : 0);
  const bool on_device = context.totals.device.steps > 0;
  if (context.share(launching) < (on_device ? least_idle_share : least_share)) return std::nullopt;
  const double tokens = context.tokens_at_once();
  const std::int64_t samples = context.samples_at_once();
  const bool small = tokens > 0 && tokens < small_batch && context.totals.samples.amount > 0;
  const std::int64_t saved = on_device ? saved_on_device(context, launching, small)
                             : small   ? saved_by_batch(context)
                                       : launching;
  Finding finding = finding_of(
      context, "launch_overhead", save(context, causes::launch_overhead, saved), small ? 0.6 : 0.8);
  finding.summary = "launching many small operators takes " + context.per_step_text(launching);
  finding.evidence =
      grouped(static_cast<WideInt>(context.ops.calls)) +
      " operators in forward and backward of a step, " +
      grouped(
          static_cast<WideInt>(context.ops.calls > 0 ? context.ops.flops / context.ops.calls : 0)) +
      " FLOPs each" +
      (context.ops.between > 0 ? ", and " + duration({context.ops.between}) + " between them"
                               : "") +
      (tokens > 0
           ? "; " + grouped(static_cast<WideInt>(tokens)) + " tokens go through the model at once"
           : "");
  finding.recommendation =
      small ? "raise the batch from " + std::to_string(samples) + " to " +
                  std::to_string(samples * larger) + " or more; then torch.compile(model)"
            : "use torch.compile(model), which fuses small operators into larger ones, or "
              "CUDA graphs; raise the batch size";
  return finding;
}

Evidence launching(double seconds) {
  return example_window([&](StepRecord& record) { prolong(record, Phase::forward, seconds); },
                        [&](Evidence& window) {
                          window.profiles[0].idle[0].count += 5000;
                          window.profiles[0].idle[0].time.value += seconds;
                        });
}

}  // namespace

extern constinit const Rule rule_launch_overhead{
    .name = "launch_overhead",
    .help = "launching many small operators takes part of the step",
    .cause = &causes::launch_overhead,
    .find = find,
    .fires = [] { return launching(0.08); },
    .negative = [] { return launching(0.005); }};

}  // namespace flopmeter
