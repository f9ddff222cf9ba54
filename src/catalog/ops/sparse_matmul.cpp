// SPDX-License-Identifier: Apache-2.0
//
// Matmuls with a factor that keeps two of every four elements.  Only kept elements count; to
// compare with a peak that counts all elements, select the sparse peak and double the FLOPs.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

std::optional<OpCost> cost(const Arg& dense, WideInt kept, WideInt columns, WideInt results) {
  const Flops work{2 * kept * columns};
  return OpCost{.executed = work,
                .model = work,
                .bytes = {(kept + dense.elements() + results) * dense.bits() / 8}};
}

/// A sparse [m, k / 2] times a dense [k, n].
template <int sparse, int dense>
std::optional<OpCost> product(const OpCall& call) {
  const Arg a = call.arg(sparse);
  const Arg b = call.arg(dense);
  if (!a.is_tensor(2) || !b.is_tensor(2)) return std::nullopt;
  return cost(b, a.elements(), b[1], WideInt{a[0]} * b[1]);
}

/// Dense rows [..., k] times a sparse [n, k / 2].
std::optional<OpCost> linear(const OpCall& call) {
  const Arg weight = call.arg(1);
  if (!weight.is_tensor(2)) return std::nullopt;
  const std::optional<Matmul> op = rows_times(call.arg(0), weight[0]);
  return op ? cost(call.arg(0), weight.elements(), op->m, op->m * op->n) : std::nullopt;
}

/// cuSPARSELt's format times a dense [k, n]: the number of rows follows from the result.
std::optional<OpCost> compressed(const OpCall& call) {
  const Arg b = call.arg(1);
  if (!b.is_tensor(2) || b[1] <= 0 || !call.output.is_tensor(2)) return std::nullopt;
  const WideInt rows = call.output.elements() / b[1];
  return cost(b, rows * b[0] / 2, b[1], call.output.elements());
}

constexpr std::array rules = {
    OpRule{.name = "aten::_sparse_semi_structured_mm", .flop_cost = product<0, 2>},
    OpRule{.name = "aten::_sparse_semi_structured_addmm",
           .flop_cost = product<1, 3>,
           .dtype_argument = 1},
    OpRule{.name = "aten::_sparse_semi_structured_linear", .flop_cost = linear},
    OpRule{.name = "aten::_cslt_sparse_mm", .flop_cost = compressed, .dtype_argument = 1},
};

// Half of a 2 x 8 matrix times 8 x 3: 2 * 8 * 3 FLOPs; 8 + 24 + 6 elements.
constexpr OpExample worked(std::string_view op, std::string_view call) {
  return op_example(op, call, 48, 76);
}

constexpr std::array examples = {
    worked("aten::_sparse_semi_structured_mm", "bf16[2,4] int32[2,1] bf16[8,3]"),
    worked("aten::_sparse_semi_structured_addmm", "bf16[2] bf16[2,4] int32[2,1] bf16[8,3]"),
    worked("aten::_sparse_semi_structured_linear", "bf16[3,8] bf16[2,4] int32[2,1]"),
    worked("aten::_cslt_sparse_mm", "bf16[99] bf16[8,3] - -> bf16[2,3]"),
};

}  // namespace

extern constinit const OpFamily op_sparse_matmul{
    .name = "sparse_matmul",
    .help = "2 x kept weights x columns for matmuls that keep two of every four weights",
    .source =
        "definition: one multiply and one add per kept weight and column; layouts as in "
        "torch.sparse",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
