// SPDX-License-Identifier: Apache-2.0
//
// One matmul per group (mixture of experts).  The tensor that is cut into groups may be longer than
// the last group: its rows (columns, or terms) are an upper bound, and the ends of the groups
// decide.
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
  const bool is_cut = a.rank == 2 || b.rank == 2;
  const int output_bits = call.output.is_tensor() ? call.output.bits() : a.bits();
  const WideInt bits =
      packing * (a.elements() * a.bits() + b.elements() * b.bits()) + results * output_bits;
  return OpCost{.executed = flops(op),
                .model = flops(op),
                .bytes = {bits / 8},
                .bounded = is_cut && call.arg(ends).is_tensor(1)};
}

/// Of a call whose cost is bounded.
template <int ends>
std::optional<PackedWork> packed(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(1);
  const WideInt terms = (a.dtype == Dtype::fp4 ? 2 : 1) * WideInt{a[-1]};
  // [rows, k] x [groups, k, n], [groups, m, k] x [k, n], or [m, k] x [k, n]: the rows, the columns,
  // or the terms are cut.
  Flops unit = flops(GroupedMatmul{.rows = 1, .n = b[-1], .k = terms});
  if (a.rank == 3) unit = flops(GroupedMatmul{.rows = a[-2], .n = 1, .k = terms});
  if (a.rank == 2 && b.rank == 2) {
    if (a.dtype == Dtype::fp4) return std::nullopt;  // ends of packed terms
    unit = flops(GroupedMatmul{.rows = a[-2], .n = b[-1], .k = 1});
  }
  return PackedWork{
      .queries_at = ends, .keys_at = ends, .unit = {.executed = unit, .model = unit, .bytes = {}}};
}

template <int ends>
constexpr OpRule rule(std::string_view name) {
  return {.name = name, .flop_cost = flop_cost<ends>, .packed = packed<ends>};
}

constexpr std::array rules = {
    rule<2>("aten::_grouped_mm"),
    rule<4>("aten::_scaled_grouped_mm"),
    rule<8>("aten::_scaled_grouped_mm_v2"),
};

constexpr std::array examples = {
    // at most ten rows of three over five experts with four outputs: 2 * 10 * 3 * 4; 30 + 60 + 40
    // elements
    bounded_example("aten::_grouped_mm", "bf16[10,3] bf16[5,3,4] int32[5] - -", 240, 260),
    // ten columns over five: the gradient of the rows, transposed; 30 + 60 + 20
    // elements
    bounded_example("aten::_grouped_mm", "bf16[5,2,6] bf16[6,10] int32[5] - -", 240, 280),
    // ten terms over five: the gradient of the experts' weights; 30 + 40 + 5 * 12 elements
    bounded_example("aten::_grouped_mm", "bf16[3,10] bf16[10,4] int32[5] - -", 240, 260),
    op_example("aten::_grouped_mm", "bf16[5,2,3] bf16[5,3,4] - - -", 240, 260),
    // 30 + 60 elements of one byte and 40 of two
    bounded_example("aten::_scaled_grouped_mm",
                    "fp8[10,3] fp8[5,3,4] [10] [5,4] int32[5] -> bf16[10,4]",
                    240,
                    170),
    // 2 * 10 * 32 * 4; (320 + 640) / 2 bytes and 40 elements of two
    bounded_example("aten::_scaled_grouped_mm_v2",
                    "fp4[10,16] fp4[5,16,4] {[10]} (0) (0) {[5,4]} (0) (0) int32[5] -> bf16[10,4]",
                    2560,
                    560),
};

}  // namespace

extern constinit const OpFamily op_grouped_matmul{
    .name = "grouped_matmul",
    .help = "2 x routed rows x n x k; the ends of the groups decide how many rows",
    .source =
        "definition: one multiply and one add per term; layouts as in "
        "torch.nn.functional.grouped_mm",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
