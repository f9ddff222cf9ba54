// SPDX-License-Identifier: Apache-2.0
#include "../src/eager_attention.h"
#include "../src/example_window.h"

#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.05;

std::optional<Finding> find(const RuleContext& context) {
  const auto eager = eager_attention(context);
  if (!eager || static_cast<double>(eager->nanoseconds) <
                    least_share * static_cast<double>(context.waterfall.total))
    return std::nullopt;
  Finding finding = finding_of(context, "poor_implementation", eager->nanoseconds, 0.7);
  // The FLOPs of scores that the mask hides count for MFU now; for a fused kernel they do not.
  *finding.expected_mfu *= 1 - eager->hidden_share;
  finding.mfu_points = *finding.expected_mfu - context.waterfall.mfu;
  finding.summary = std::string{"attention is made of single operators"} +
                    (eager->per_head ? ", one head after the other" : "") + ": " +
                    context.a_step_text(eager->nanoseconds) +
                    " beyond what its products and softmax need";
  finding.evidence = grouped(static_cast<WideInt>(eager->softmax_calls)) +
                     " softmax operators in forward of a step and no fused attention among " +
                     grouped(static_cast<WideInt>(context.ops.calls)) + " operators";
  finding.recommendation =
      "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True) on all heads at "
      "once (Hugging Face: attn_implementation=\"sdpa\" or \"flash_attention_2\")";
  return finding;
}

OpProfileRow op(const char* name, OpKind kind, Phase phase, double seconds, std::uint64_t flops = 0) {
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
    .help = "attention is made of single operators where a fused one would do",
    .find = find,
    .fires = [] { return attending(false); },
    .negative = [] { return attending(true); }};

}  // namespace flopmeter
