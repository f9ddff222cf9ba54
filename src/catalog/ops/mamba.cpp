// SPDX-License-Identifier: Apache-2.0
//
// Mamba-2's scan: the Python functions of mamba_ssm around its Triton kernels.  The cost is that of
// the recurrence per token, independent of the chunks in which a kernel computes it.  The scan of
// Mamba 1 does not use matrix units and has no agreed cost.
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <array>

namespace flopmeter {
namespace {

/// x [batch, length, heads, size] at `x`, B [batch, length, groups, state] at `b`; C is like B, the
/// result like x.
template <int x_at, int b_at, int times>
std::optional<OpCost> scan(const OpCall& call) {
  const Arg x = call.arg(x_at);
  const Arg b = call.arg(b_at);
  if (!x.is_tensor(4) || !b.is_tensor(4)) return std::nullopt;
  const StateSpaceScan op{
      .tokens = WideInt{x[0]} * x[1], .inner = WideInt{x[2]} * x[3], .state = b[3]};
  const Flops work = times * flops(op);
  return OpCost{.executed = work,
                .model = work,
                .bytes = {2 * WideInt{times} * (x.elements() + b.elements()) * x.bits() / 8}};
}

constexpr std::array rules = {
    OpRule{.name = "mamba_ssm.ops.triton.ssd_combined::_mamba_chunk_scan_combined_fwd",
           .flop_cost = scan<0, 3, 1>,
           .python = true,
           .place_of = place_in<"x dt A B">},
    OpRule{.name = "mamba_ssm.ops.triton.ssd_combined::_mamba_chunk_scan_combined_bwd",
           .flop_cost = scan<1, 4, 2>,
           .dtype_argument = 1,
           .python = true,
           .place_of = place_in<"dout x dt A B">},
    OpRule{.name = "selective_scan_cuda::fwd", .flop_cost = unknown_cost, .python = true},
    OpRule{.name = "selective_scan_cuda::bwd", .flop_cost = unknown_cost, .python = true},
};

// 2 x 3 tokens, 4 heads of 8, one group of state 16: 7 * 6 * 32 * 16 FLOPs; 2 * (192 + 96)
// elements.
constexpr std::array examples = {
    op_example("mamba_ssm.ops.triton.ssd_combined::_mamba_chunk_scan_combined_fwd",
               "bf16[2,3,4,8] [2,3,4] [4] bf16[2,3,1,16] bf16[2,3,1,16] 256",
               21504,
               1152),
    op_example("mamba_ssm.ops.triton.ssd_combined::_mamba_chunk_scan_combined_bwd",
               "bf16[2,3,4,8] bf16[2,3,4,8] [2,3,4] [4] bf16[2,3,1,16] bf16[2,3,1,16] "
               "bf16[2,3,4,8] 256",
               43008,
               2304),
};

}  // namespace

extern constinit const OpFamily op_mamba{
    .name = "mamba",
    .help = "7 x tokens x inner x state forward, twice that backward",
    .source = "Megatron-LM, megatron/training/training.py, FLOPs of a mamba layer",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
