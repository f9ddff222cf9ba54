// SPDX-License-Identifier: Apache-2.0
//
// causal-conv1d: a depthwise convolution over time.
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <array>

namespace flopmeter {
namespace {

/// x [batch, channels, length], weight [channels, width]; the gradients of both cost the same.
template <int times>
std::optional<OpCost> convolution(const OpCall& call) {
  const Arg x = call.arg(0);
  const Arg weight = call.arg(1);
  if (!x.is_tensor(3) || !weight.is_tensor(2)) return std::nullopt;
  constexpr WideInt twice = 2 * WideInt{times};
  const Flops work = {twice * x.elements() * weight[1]};
  return OpCost{.executed = work, .model = work, .bytes = {twice * x.elements() * x.bits() / 8}};
}

constexpr std::array rules = {
    OpRule{.name = "DaoAILab::_causal_conv1d_fwd_cpp", .flop_cost = convolution<1>},
    OpRule{.name = "DaoAILab::_causal_conv1d_bwd_cpp", .flop_cost = convolution<2>},
};

// 2 sequences of 5 with 4 channels, width 3: 2 * 40 * 3 FLOPs; 40 elements in and out
constexpr std::array examples = {
    op_example("DaoAILab::_causal_conv1d_fwd_cpp", "bf16[2,4,5] bf16[4,3]", 240, 160),
    op_example("DaoAILab::_causal_conv1d_bwd_cpp", "bf16[2,4,5] bf16[4,3]", 480, 320),
};

}  // namespace

extern constinit const OpFamily op_causal_conv1d{
    .name = "causal_conv1d",
    .help = "2 x tokens x channels x width; the gradients of input and weight cost the same each",
    .source = "definition of a depthwise convolution; schemas of causal-conv1d 1.5",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
