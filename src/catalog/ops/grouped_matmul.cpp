// SPDX-License-Identifier: Apache-2.0
//
// One matmul per group (mixture of experts).  The ends of the groups are on the device, but
// their sum is known: all rows (columns, or terms) of the tensor that is cut into groups are used.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// self, mat2; `ends` is the position of the tensor of group ends.
template <int ends>
std::optional<OpCost> flop_cost(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(1);
  if (!a.is_tensor() || !b.is_tensor()) return std::nullopt;
  if ((a.rank != 2 && a.rank != 3) || (b.rank != 2 && b.rank != 3)) return std::nullopt;
  const WideInt packing = a.dtype == Dtype::fp4 ? 2 : 1;  // two elements in one along k
  GroupedMatmul op{.rows = a[-2], .n = b[-1], .k = packing * a[-1]};
  WideInt results =
      op.rows *
      op.n;  // [rows, k] x [groups, k, n]: rows are cut; [groups, m, k] x [k, n]: columns are
  if (a.rank == 3 && b.rank == 3) {  // a batch of equal matmuls
    op.rows *= a[0];
    results *= a[0];
  }
  if (a.rank == 2 &&
      b.rank == 2) {  // [m, k] x [k, n]: the terms are cut, and each group has a result
    const Arg groups = call.arg(ends);
    if (!groups.is_tensor(1)) return std::nullopt;
    results *= groups[0];
  }
  const int output_bits = call.output.is_tensor() ? call.output.bits() : a.bits();
  const WideInt bits =
      packing * (a.elements() * a.bits() + b.elements() * b.bits()) + results * output_bits;
  return OpCost{.executed = flops(op), .model = flops(op), .bytes = {bits / 8}};
}

constexpr std::array rules = {
    OpRule{.name = "aten::_grouped_mm", .flop_cost = flop_cost<2>},
    OpRule{.name = "aten::_scaled_grouped_mm", .flop_cost = flop_cost<4>},
    OpRule{.name = "aten::_scaled_grouped_mm_v2", .flop_cost = flop_cost<8>},
};

constexpr std::array examples = {
    // ten rows of three over five experts with four outputs: 2 * 10 * 3 * 4; 30 + 60 + 40 elements
    op_example("aten::_grouped_mm", "bf16[10,3] bf16[5,3,4] int32[5] - -", 240, 260),
    // ten columns over five: the gradient of the rows, transposed; 30 + 60 + 20
    // elements
    op_example("aten::_grouped_mm", "bf16[5,2,6] bf16[6,10] int32[5] - -", 240, 280),
    // ten terms over five: the gradient of the experts' weights; 30 + 40 + 5 * 12 elements
    op_example("aten::_grouped_mm", "bf16[3,10] bf16[10,4] int32[5] - -", 240, 260),
    op_example("aten::_grouped_mm", "bf16[5,2,3] bf16[5,3,4] - - -", 240, 260),
    // 30 + 60 elements of one byte and 40 of two
    op_example("aten::_scaled_grouped_mm",
               "fp8[10,3] fp8[5,3,4] [10] [5,4] int32[5] -> bf16[10,4]",
               240,
               170),
    // 2 * 10 * 32 * 4; (320 + 640) / 2 bytes and 40 elements of two
    op_example("aten::_scaled_grouped_mm_v2",
               "fp4[10,16] fp4[5,16,4] {[10]} (0) (0) {[5,4]} (0) (0) int32[5] -> bf16[10,4]",
               2560,
               560),
};

}  // namespace

extern constinit const OpFamily op_grouped_matmul{
    .name = "grouped_matmul",
    .help = "2 x routed rows x n x k, however they are shared out over the groups",
    .source =
        "definition: one multiply and one add per term; layouts as in "
        "torch.nn.functional.grouped_mm",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
