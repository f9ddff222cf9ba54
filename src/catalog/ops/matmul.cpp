// SPDX-License-Identifier: Apache-2.0
//
// Products of dense matrices, vectors and batches of them.
//
// Not here, because their work is elementwise or is done by operators that are: _cdist_forward (p =
// 2 ends in mm and bmm, every other norm is elementwise), addr and outer (no sum, so no
// multiply-adds).
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// The sum of [b, m, k] x [b, k, n] over b is one matmul with inner dimension b k.
std::optional<OpCost> batch_sum(const OpCall& call) {
  const Arg a = call.arg(1);
  const Arg b = call.arg(2);
  if (!a.is_tensor(3) || !b.is_tensor(3)) return std::nullopt;
  return matmul_cost(Matmul{.m = a[1], .n = b[2], .k = WideInt{a[0]} * a[2]}, a);
}

/// [m, k] x [k].
template <int first>
std::optional<OpCost> matrix_vector(const OpCall& call) {
  const Arg a = call.arg(first);
  if (!a.is_tensor(2) || !call.arg(first + 1).is_tensor(1)) return std::nullopt;
  return matmul_cost(Matmul{.m = a[0], .n = 1, .k = a[1]}, a);
}

std::optional<OpCost> inner(const OpCall& call) {
  const Arg a = call.arg(0);
  if (!a.is_tensor(1) || !call.arg(1).is_tensor(1)) return std::nullopt;
  return matmul_cost(Matmul{.m = 1, .n = 1, .k = a[0]}, a);
}

/// Any ranks: leading dimensions are broadcast; a vector is a row or a column.
std::optional<Matmul> broadcast(const Arg& a, const Arg& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.rank == 0 || b.rank == 0) return std::nullopt;
  Matmul op{.m = a.rank > 1 ? a[-2] : 1, .n = b.rank > 1 ? b[-1] : 1, .k = a[-1]};
  for (int i = 3; i <= a.rank || i <= b.rank; ++i) {
    const std::int64_t of_a = i <= a.rank ? a[-i] : 1;
    op.batch *= of_a == 1 && i <= b.rank ? b[-i] : of_a;
  }
  return op;
}

std::optional<OpCost> any_product(const OpCall& call) {
  const std::optional<Matmul> op = broadcast(call.arg(0), call.arg(1));
  return op ? std::optional{matmul_cost(*op, call.arg(0))} : std::nullopt;
}

/// grad, self, other, mask: each requested gradient costs one matmul.
std::optional<OpCost> any_gradients(const OpCall& call) {
  const std::optional<Matmul> op = broadcast(call.arg(1), call.arg(2));
  const std::optional<WideInt> wanted = wanted_gradients(call.arg(3), 2);
  return op && wanted ? std::optional{matmul_cost(*op, call.arg(1), *wanted)} : std::nullopt;
}

/// One [m, k] x [k, n] for each pair of two lists.
std::optional<OpCost> for_each(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(1);
  if (a.kind != Arg::Kind::tensors || b.kind != Arg::Kind::tensors || a.rank != b.rank)
    return std::nullopt;
  OpCost sum;
  for (int i = 0; i < a.rank; ++i) {
    const std::array pair = {a.items[i], b.items[i]};
    const std::optional<OpCost> one = matmul_cost<0>({.args = pair, .output = {}});
    if (!one) return std::nullopt;
    sum.executed += one->executed;
    sum.model += one->model;
    sum.bytes += one->bytes;
  }
  return sum;
}

constexpr std::array rules = {
    OpRule{.name = "aten::mm", .flop_cost = matmul_cost<0>},
    OpRule{.name = "aten::addmm", .flop_cost = matmul_cost<1>, .dtype_argument = 1},
    OpRule{.name = "aten::_addmm_activation", .flop_cost = matmul_cost<1>, .dtype_argument = 1},
    OpRule{.name = "aten::bmm", .flop_cost = matmul_cost<0, 3>, .hides_attention = true},
    OpRule{.name = "aten::baddbmm",
           .flop_cost = matmul_cost<1, 3>,
           .dtype_argument = 1,
           .hides_attention = true},
    OpRule{.name = "aten::addbmm", .flop_cost = batch_sum, .dtype_argument = 1},
    OpRule{.name = "aten::mv", .flop_cost = matrix_vector<0>},
    OpRule{.name = "aten::addmv", .flop_cost = matrix_vector<1>, .dtype_argument = 1},
    OpRule{.name = "aten::dot", .flop_cost = inner},
    OpRule{.name = "aten::vdot", .flop_cost = inner},
    OpRule{
        .name = "aten::matmul", .flop_cost = any_product, .hides_attention = true, .offline = true},
    OpRule{.name = "aten::matmul_backward",
           .flop_cost = any_gradients,
           .dtype_argument = 1,
           .hides_attention = true},
    OpRule{.name = "aten::_foreach_mm", .flop_cost = for_each},
};

constexpr std::array examples = {
    // 2 x 4 outputs of three multiply-adds; 6 + 12 + 8 elements of 4 bytes
    op_example("aten::mm", "[2,3] [3,4]", 48, 104),
    op_example("aten::addmm", "[4] bf16[2,3] bf16[3,4]", 48, 52),
    op_example("aten::_addmm_activation", "[4] [2,3] [3,4]", 48, 104),
    // five of them
    op_example("aten::bmm", "[5,2,3] [5,3,4]", 240, 520),
    op_example("aten::baddbmm", "[5,2,4] [5,2,3] [5,3,4]", 240, 520),
    // the same matmuls, but one [2, 4] result
    op_example("aten::addbmm", "[2,4] [5,2,3] [5,3,4]", 240, 392),
    // 2 outputs of three multiply-adds; 6 + 3 + 2 elements
    op_example("aten::mv", "[2,3] [3]", 12, 44),
    op_example("aten::addmv", "[2] [2,3] [3]", 12, 44),
    op_example("aten::dot", "[7] [7]", 14, 60),
    // a complex multiply-add is four real ones; an element has 8 bytes
    op_example("aten::vdot", "complex[7] complex[7]", 56, 120),
    // 5 x 6 matmuls of [2, 3] x [3, 4]
    op_example("aten::matmul", "[5,1,2,3] [6,3,4]", 1440, 3120),
    op_example("aten::matmul_backward", "[2,4] [2,3] [3,4] (1,1)", 96, 208),
    op_example("aten::_foreach_mm", "{[2,3] [1,1]} {[3,4] [1,9]}", 66, 180),
};

}  // namespace

extern constinit const OpFamily op_matmul{
    .name = "matmul",
    .help = "2 m n k per matmul of an m x k and a k x n matrix",
    .source = "definition: one multiply and one add a term",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
