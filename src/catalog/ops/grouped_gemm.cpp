// SPDX-License-Identifier: Apache-2.0
//
// The grouped_gemm package, which MegaBlocks and Megatron-LM use for mixtures of experts.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// a, b, c, rows of each group, transpose a, transpose b.
std::optional<OpCost> grouped(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(1);
  const Arg groups = call.arg(3);
  if (!a.is_tensor(2) || !b.is_tensor() || !groups.is_tensor(1)) return std::nullopt;
  GroupedMatmul op{.groups = groups[0], .rows = a[0], .k = a[1]};
  if (call.arg(4).number_or(0) != 0) {  // the gradient of the weights: rows are cut into groups
    if (b.rank != 2) return std::nullopt;
    op.n = b[1];
  } else {
    if (b.rank != 3) return std::nullopt;
    op.n = call.arg(5).number_or(0) != 0 ? b[1] : b[2];
  }
  return OpCost{.executed = flops(op), .model = flops(op), .bytes = bytes_moved(op, a.dtype)};
}

constexpr std::array rules = {
    OpRule{.name = "grouped_gemm_backend::gmm", .flop_cost = grouped, .python = true},
};

// ten rows of three over five experts with four outputs: 2 * 10 * 3 * 4; 10 * 7 + 60 elements
constexpr OpExample worked(std::string_view call) {
  return op_example("grouped_gemm_backend::gmm", call, 240, 260);
}
constexpr std::array examples = {
    worked("bf16[10,3] bf16[5,3,4] bf16[10,4] int32[5] 0 0"),
    worked("bf16[10,3] bf16[5,4,3] bf16[10,4] int32[5] 0 1"),
    worked("bf16[10,3] bf16[10,4] bf16[5,3,4] int32[5] 1 0"),
};

}  // namespace

extern constinit const OpFamily op_grouped_gemm{
    .name = "grouped_gemm",
    .help = "2 x routed rows x n x k, however they are distributed over the experts",
    .source = "grouped_gemm/csrc/grouped_gemm.cu",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
