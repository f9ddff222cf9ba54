// SPDX-License-Identifier: Apache-2.0
//
// GEMMs of FBGEMM's GenAI operators and of MSLK, which took them over: input [m, k], weight [n, k];
// results have two bytes per element.
#include "matmul_cost.h"

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

std::optional<OpCost> product(
    const Arg& x, const Arg& w, WideInt rows, WideInt columns, WideInt k) {
  const WideInt results = rows * columns;
  const Flops work = {2 * results * k};
  return OpCost{.executed = work,
                .model = work,
                .bytes = {(x.elements() * x.bits() + w.elements() * w.bits()) / 8 + results * 2}};
}

/// Rows of the input times a weight, or a weight per group or batch.
std::optional<OpCost> rows_times_weight(const Arg& x, const Arg& w, WideInt packing) {
  if (!x.is_tensor() || !w.is_tensor() || x.rank < 2 || w.rank < 2) return std::nullopt;
  const WideInt rows = x.elements() / std::max<std::int64_t>(x[-1], 1);
  return product(x, w, rows, w[-2], x[-1] * packing);
}

std::optional<OpCost> dense(const OpCall& call) {
  return rows_times_weight(call.arg(0), call.arg(1), 1);
}

/// fp4: two elements in a byte along k.
std::optional<OpCost> packed(const OpCall& call) {
  return rows_times_weight(call.arg(0), call.arg(1), 2);
}

/// Of a matmul that is cut into groups, which may end before the tensor does.
std::optional<OpCost> bound(std::optional<OpCost> cost) {
  if (cost) cost->bounded = true;
  return cost;
}

/// Groups cut m, n, or k, as in torch._grouped_mm; `k_first`: the weight is [k, n].
std::optional<OpCost> grouped_product(const OpCall& call, bool k_first, WideInt packing) {
  const Arg x = call.arg(0);
  const Arg w = call.arg(1);
  if (!x.is_tensor() || !w.is_tensor() || x.rank < 2 || w.rank < 2) return std::nullopt;
  const WideInt n = w[k_first ? -1 : -2];
  if (x.rank == 3 && w.rank == 3) return product(x, w, x[0] * WideInt{x[1]}, n, x[2] * packing);
  return bound(product(x, w, x[-2], n, x[-1] * packing));
}

template <bool k_first>
std::optional<OpCost> grouped(const OpCall& call) {
  return grouped_product(call, k_first, 1);
}

std::optional<OpCost> packed_grouped(const OpCall& call) {
  return grouped_product(call, true, 2);
}

/// [rows, n] and [rows, k], whose rows are cut into groups.
std::optional<OpCost> weight_gradient(const OpCall& call) {
  const Arg x = call.arg(0);
  const Arg w = call.arg(1);
  if (!x.is_tensor(2) || !w.is_tensor(2)) return std::nullopt;
  return bound(product(x, w, x[1], w[1], x[0]));
}

/// A list of inputs and a list of weights.
std::optional<OpCost> lists(const OpCall& call) {
  const Arg xs = call.arg(0);
  const Arg ws = call.arg(1);
  if (xs.kind != Arg::Kind::tensors || ws.kind != Arg::Kind::tensors || xs.rank != ws.rank)
    return std::nullopt;
  if (xs.rank == 0) return std::nullopt;
  OpCost sum{};
  for (int i = 0; i < xs.rank; ++i) {
    const auto one = rows_times_weight(xs.items[i], ws.items[i], 1);
    if (!one) return std::nullopt;
    sum.executed.value += one->executed.value;
    sum.model.value += one->model.value;
    sum.bytes.value += one->bytes.value;
  }
  return sum;
}

/// "space::op"
template <ParameterNames space, ParameterNames op>
constexpr auto joined_name = [] {
  std::array<char, space.text.size() + op.text.size()> text{};
  auto* end = std::copy_n(space.text.begin(), space.text.size() - 1, text.begin());
  *end++ = ':';
  *end++ = ':';
  std::copy_n(op.text.begin(), op.text.size() - 1, end);
  return text;
}();
template <ParameterNames space, ParameterNames op>
constexpr std::string_view name{joined_name<space, op>.data(), joined_name<space, op>.size()};

/// The rows of dynamic groups are on the device; the layout of the other unknown ones is not
/// documented.
template <ParameterNames space>
constexpr std::array rules_of = {
    OpRule{.name = name<space, "f8f8bf16">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_rowwise">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_rowwise_out">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_rowwise_preshuffle">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8f16_rowwise">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8f16_rowwise_preshuffle">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_rowwise_batched">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_rowwise_grouped_stacked">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_tensorwise">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_blockwise">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_cublas">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_lite">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_groupwise">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_groupwise_grouped">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_groupwise_grouped_preshuffle">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16bf16bf16_grouped_stacked">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16bf16bf16_grouped_grad">, .flop_cost = dense},
    OpRule{.name = name<space, "i8i8bf16">, .flop_cost = dense},
    OpRule{.name = name<space, "i8i8bf16_dynamic">, .flop_cost = dense},
    OpRule{.name = name<space, "f8i4bf16_rowwise">, .flop_cost = dense},
    OpRule{.name = name<space, "f8i4bf16_shuffled">, .flop_cost = dense},
    OpRule{.name = name<space, "f8i4bf16_shuffled_grouped">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16i4bf16_rowwise">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16i4bf16_rowwise_batched">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16i4bf16_shuffled">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16i4bf16_shuffled_batched">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16i4bf16_shuffled_grouped">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16_fast_gemv">, .flop_cost = dense},
    OpRule{.name = name<space, "bf16fp8bf16_fast_gemv">, .flop_cost = dense},
    OpRule{.name = name<space, "fp8fp8bf16_fast_gemv">, .flop_cost = dense},
    OpRule{.name = name<space, "f8f8bf16_rowwise_grouped_mm">, .flop_cost = grouped<false>},
    OpRule{.name = name<space, "mx8mx8bf16_grouped_mm">, .flop_cost = grouped<true>},
    OpRule{.name = name<space, "bf16bf16bf16_grouped_wgrad">, .flop_cost = weight_gradient},
    OpRule{.name = name<space, "f8f8bf16_rowwise_grouped">, .flop_cost = lists},
    OpRule{.name = name<space, "f8f8bf16_rowwise_grouped_cat">, .flop_cost = lists},
    OpRule{.name = name<space, "bf16bf16bf16_grouped">, .flop_cost = lists},
    OpRule{.name = name<space, "bf16bf16bf16_grouped_cat">, .flop_cost = lists},
    OpRule{.name = name<space, "f4f4bf16">, .flop_cost = packed, .compute_dtype = Dtype::fp4},
    OpRule{.name = name<space, "f4f4bf16_grouped_stacked">,
           .flop_cost = packed,
           .compute_dtype = Dtype::fp4},
    OpRule{.name = name<space, "f4f4bf16_grouped_mm">,
           .flop_cost = packed_grouped,
           .compute_dtype = Dtype::fp4},
    OpRule{.name = name<space, "bf16bf16bf16_grouped_dynamic">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "f8f8bf16_rowwise_grouped_dynamic">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "f8f8bf16_conv">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "f4f4bf16_ultra_grouped_mm">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "mx8mx4bf16">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "mx8mx6bf16">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "mx8mx4bf16_grouped_mm">, .flop_cost = unknown_cost},
    OpRule{.name = name<space, "bf16x9_gemm">, .flop_cost = unknown_cost},
};

// ten rows of three, four outputs: 2 * 10 * 3 * 4 FLOPs; two elements of four bits in a byte: 2 *
// 10 * 6 * 4
template <ParameterNames space>
constexpr std::array examples_of = {
    op_example(name<space, "f8f8bf16">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_rowwise">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_rowwise_out">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_rowwise_preshuffle">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8f16_rowwise">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8f16_rowwise_preshuffle">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_rowwise_batched">, "fp8[2,5,3] fp8[2,4,3]", 240, 134),
    op_example(name<space, "f8f8bf16_rowwise_grouped_stacked">, "fp8[10,3] fp8[5,4,3]", 240, 170),
    op_example(name<space, "f8f8bf16_tensorwise">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_blockwise">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_cublas">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_lite">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_groupwise">, "fp8[10,3] fp8[4,3]", 240, 122),
    op_example(name<space, "f8f8bf16_groupwise_grouped">, "fp8[10,3] fp8[5,4,3]", 240, 170),
    op_example(
        name<space, "f8f8bf16_groupwise_grouped_preshuffle">, "fp8[10,3] fp8[5,4,3]", 240, 170),
    op_example(name<space, "bf16bf16bf16_grouped_stacked">, "bf16[10,3] bf16[5,4,3]", 240, 260),
    op_example(name<space, "bf16bf16bf16_grouped_grad">, "bf16[10,3] bf16[5,4,3]", 240, 260),
    op_example(name<space, "i8i8bf16">, "int8[10,3] int8[4,3]", 240, 122),
    op_example(name<space, "i8i8bf16_dynamic">, "int8[10,3] int8[4,3]", 240, 122),
    op_example(name<space, "f8i4bf16_rowwise">, "fp8[10,3] int8[4,2]", 240, 118),
    op_example(name<space, "f8i4bf16_shuffled">, "fp8[10,3] int8[4,2]", 240, 118),
    op_example(name<space, "f8i4bf16_shuffled_grouped">, "fp8[10,3] int8[5,4,2]", 240, 150),
    op_example(name<space, "bf16i4bf16_rowwise">, "bf16[10,3] int8[4,2]", 240, 148),
    op_example(name<space, "bf16i4bf16_rowwise_batched">, "bf16[2,5,3] int8[2,4,2]", 240, 156),
    op_example(name<space, "bf16i4bf16_shuffled">, "bf16[10,3] int8[4,2]", 240, 148),
    op_example(name<space, "bf16i4bf16_shuffled_batched">, "bf16[2,5,3] int8[2,4,2]", 240, 156),
    op_example(name<space, "bf16i4bf16_shuffled_grouped">, "bf16[10,3] int8[5,4,2]", 240, 180),
    op_example(name<space, "bf16_fast_gemv">, "bf16[10,3] bf16[4,3]", 240, 164),
    op_example(name<space, "bf16fp8bf16_fast_gemv">, "bf16[10,3] fp8[4,3]", 240, 152),
    op_example(name<space, "fp8fp8bf16_fast_gemv">, "fp8[10,3] fp8[4,3]", 240, 122),
    bounded_example(name<space, "f8f8bf16_rowwise_grouped_mm">, "fp8[10,3] fp8[5,4,3]", 240, 170),
    bounded_example(name<space, "f8f8bf16_rowwise_grouped_mm">, "fp8[5,10,3] fp8[4,3]", 240, 242),
    bounded_example(name<space, "mx8mx8bf16_grouped_mm">, "fp8[10,3] fp8[5,3,4]", 240, 170),
    bounded_example(name<space, "mx8mx8bf16_grouped_mm">, "fp8[10,3] fp8[3,4]", 240, 122),
    bounded_example(name<space, "bf16bf16bf16_grouped_wgrad">, "bf16[10,4] bf16[10,3]", 240, 164),
    op_example(name<space, "f8f8bf16_rowwise_grouped">,
               "{fp8[7,3] fp8[3,3]} {fp8[4,3] fp8[4,3]}",
               240,
               134),
    op_example(name<space, "f8f8bf16_rowwise_grouped_cat">,
               "{fp8[7,3] fp8[3,3]} {fp8[4,3] fp8[4,3]}",
               240,
               134),
    op_example(name<space, "bf16bf16bf16_grouped">,
               "{bf16[7,3] bf16[3,3]} {bf16[4,3] bf16[4,3]}",
               240,
               188),
    op_example(name<space, "bf16bf16bf16_grouped_cat">,
               "{bf16[7,3] bf16[3,3]} {bf16[4,3] bf16[4,3]}",
               240,
               188),
    op_example(name<space, "f4f4bf16">, "int8[10,3] int8[4,3]", 480, 122),
    op_example(name<space, "f4f4bf16_grouped_stacked">, "int8[10,3] int8[5,4,3]", 480, 170),
    bounded_example(name<space, "f4f4bf16_grouped_mm">, "int8[10,3] int8[5,3,4]", 480, 170),
};

template <class T, std::size_t size>
constexpr std::array<T, 2 * size> both(const std::array<T, size>& first,
                                       const std::array<T, size>& second) {
  std::array<T, 2 * size> all{};
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), all.begin()));
  return all;
}
constexpr std::array rules = both(rules_of<"fbgemm">, rules_of<"mslk">);
constexpr std::array examples = both(examples_of<"fbgemm">, examples_of<"mslk">);

}  // namespace

extern constinit const OpFamily op_fbgemm{
    .name = "fbgemm",
    .help = "2 m n k; grouped: 2 x routed rows x n x k",
    .source = "schemas and shape checks of fbgemm_gpu/experimental/gen_ai 1.4 and MSLK",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
