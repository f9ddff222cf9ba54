// SPDX-License-Identifier: Apache-2.0
#include "../src/eager_attention.h"
#include "../src/example_window.h"

#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr double least_share = 0.25;
constexpr double small_batch = 2048;  // tokens at once

std::optional<Finding> find(const Inquiry& inquiry) {
  // What a loop over attention heads launches is that loop's fault.
  const auto eager = eager_attention(inquiry);
  const std::int64_t lost =
      inquiry.waterfall.lost(Cause::launch_overhead) - (eager ? eager->launching : 0);
  if (static_cast<double>(lost) < least_share * static_cast<double>(inquiry.waterfall.total))
    return std::nullopt;
  Finding finding = finding_of(inquiry, "launch_overhead", lost, 0.8);
  finding.summary = "launching many small operators takes " + inquiry.a_step_text(lost);
  finding.evidence = grouped(static_cast<WideInt>(inquiry.ops.calls)) +
                     " operators in forward and backward of a step, " +
                     si(inquiry.ops.calls > 0 ? inquiry.ops.flops / inquiry.ops.calls : 0) +
                     "FLOPs each";
  const double tokens = inquiry.tokens_at_once();
  const auto samples = inquiry.sums.samples / std::max<std::int64_t>(inquiry.sums.micro_steps, 1);
  const bool small = tokens > 0 && tokens < small_batch;
  finding.remedy = small && samples > 0
                       ? "raise the batch from " + std::to_string(samples) + " to " +
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
