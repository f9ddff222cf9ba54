// SPDX-License-Identifier: Apache-2.0
#include "../src/eager_attention.h"
#include "../src/example_window.h"

#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

std::optional<Finding> find(const RuleContext& context) {
  const auto eager = eager_attention(context);
  if (!eager || context.share(eager->nanoseconds) < least_share) return std::nullopt;
  WhatIf what_if = save(context, causes::memory_bound, eager->nanoseconds);
  // The FLOPs of masked scores count for MFU now; for a fused kernel they do not.
  what_if.useful_factor = 1 - eager->hidden_share;
  Finding finding = finding_of(context, "poor_implementation", what_if, 0.7);
  finding.summary = std::string{"attention consists of single operators"} +
                    (eager->per_head ? ", one head after the other" : "") + ": " +
                    context.per_step_text(eager->nanoseconds) +
                    " more than its matmuls and softmax need";
  finding.evidence = grouped(static_cast<WideInt>(eager->softmax_calls)) +
                     " softmax operators in forward of a step and no fused attention among " +
                     grouped(static_cast<WideInt>(context.ops.calls)) + " operators";
  finding.recommendation =
      "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True) on all heads at "
      "once (Hugging Face: attn_implementation=\"sdpa\" or \"flash_attention_2\")";
  return finding;
}

OpProfileRow op(
    const char* name, OpKind kind, Phase phase, double seconds, std::uint64_t flops = 0) {
  return {.name = name,
          .kind = kind,
          .calls = 96,
          .self = {seconds},
          .elements = 1 << 18,
          .backward = phase == Phase::backward,
          .phase = phase,
          .flops = flops};
}

Evidence attending(bool fused) {
  return example_window(
      [](StepRecord& record) {
        prolong(record, Phase::forward, 0.02);
        prolong(record, Phase::backward, 0.03);
      },
      [&](Evidence& window) {
        auto& rows = window.profiles[0].rows;
        if (fused) {
          rows.push_back(op("aten::_scaled_dot_product_flash_attention_for_cpu",
                            OpKind::compute,
                            Phase::forward,
                            0.04));
          return;
        }
        rows.push_back(op("aten::_softmax", OpKind::memory, Phase::forward, 0.015));
        rows.push_back(op("aten::_softmax_backward_data", OpKind::memory, Phase::backward, 0.025));
        rows.push_back(op("aten::bmm", OpKind::compute, Phase::forward, 0.005, 1'000'000'000));
      });
}

}  // namespace

extern constinit const Rule rule_poor_implementation{
    .name = "poor_implementation",
    .help = "attention consists of single operators instead of a fused one",
    .cause = &causes::memory_bound,
    .find = find,
    .fires = [] { return attending(false); },
    .negative = [] { return attending(true); }};

}  // namespace flopmeter
