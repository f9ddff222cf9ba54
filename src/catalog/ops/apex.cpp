// SPDX-License-Identifier: Apache-2.0
//
// apex's gradient of a linear layer's weight, added to the main gradient; Megatron-LM uses it for
// its own linear layers.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// input [tokens, in], gradient of the output [tokens, out].
std::optional<OpCost> weight_gradient(const OpCall& call) {
  const Arg gradient = call.arg(1);
  if (!gradient.is_tensor() || gradient.rank == 0) return std::nullopt;
  const auto op = rows_times(call.arg(0), gradient[-1]);
  return op ? std::optional(matmul_cost(*op, call.arg(0))) : std::nullopt;
}

constexpr std::array rules = {
    OpRule{.name = "fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp32",
           .flop_cost = weight_gradient,
           .python = true},
    OpRule{.name = "fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp16",
           .flop_cost = weight_gradient,
           .python = true},
};

// ten rows of three, four outputs: 2 * 10 * 3 * 4 FLOPs; 30 + 12 + 40 elements
constexpr std::array examples = {
    op_example("fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp32",
               "bf16[10,3] bf16[10,4] [4,3]",
               240,
               164),
    op_example("fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp16",
               "bf16[10,3] bf16[10,4] bf16[4,3]",
               240,
               164),
};

}  // namespace

extern constinit const OpFamily op_apex{
    .name = "apex",
    .help = "2 x tokens x inputs x outputs: the gradient of a linear layer's weight",
    .source = "apex/csrc/megatron/fused_weight_gradient_dense.cpp",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
