// SPDX-License-Identifier: Apache-2.0
//
// GEMMs of FBGEMM's GenAI operators and of MSLK, which has the same: input [m, k], weight [n, k];
// results are bf16.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// One product: rows of the input times a weight, or a weight per group or batch.
std::optional<OpCost> product(const Arg& x, const Arg& w, WideInt packing) {
  if (!x.is_tensor() || !w.is_tensor() || x.rank < 2 || w.rank < 2) return std::nullopt;
  const WideInt rows = x.elements() / std::max<std::int64_t>(x[-1], 1);
  const WideInt results = rows * w[-2];
  const Flops work = {2 * results * x[-1] * packing};
  return OpCost{.executed = work,
                .model = work,
                .bytes = {(x.elements() * x.bits() + w.elements() * w.bits()) / 8 + results * 2}};
}

std::optional<OpCost> dense(const OpCall& call) {
  return product(call.arg(0), call.arg(1), 1);
}

/// fp4: two elements in a byte along k.
std::optional<OpCost> packed(const OpCall& call) {
  return product(call.arg(0), call.arg(1), 2);
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
    const auto one = product(xs.items[i], ws.items[i], 1);
    if (!one) return std::nullopt;
    sum.executed.value += one->executed.value;
    sum.model.value += one->model.value;
    sum.bytes.value += one->bytes.value;
  }
  return sum;
}

constexpr std::array rules = {
    OpRule{.name = "fbgemm::f8f8bf16", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_rowwise", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_rowwise_batched", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_tensorwise", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_blockwise", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_cublas", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_lite", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_groupwise", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_rowwise_grouped_stacked", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_rowwise_grouped_mm", .flop_cost = dense},
    OpRule{.name = "fbgemm::bf16bf16bf16_grouped_stacked", .flop_cost = dense},
    OpRule{.name = "fbgemm::bf16bf16bf16_grouped_mm", .flop_cost = dense},
    OpRule{.name = "fbgemm::mx8mx8bf16", .flop_cost = dense},
    OpRule{.name = "fbgemm::mx8mx8bf16_grouped_mm", .flop_cost = dense},
    OpRule{.name = "fbgemm::i8i8bf16", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8i4bf16_rowwise", .flop_cost = dense},
    OpRule{.name = "fbgemm::bf16i4bf16_rowwise", .flop_cost = dense},
    OpRule{.name = "fbgemm::f8f8bf16_rowwise_grouped", .flop_cost = lists},
    OpRule{.name = "fbgemm::bf16bf16bf16_grouped", .flop_cost = lists},
    OpRule{.name = "fbgemm::f4f4bf16", .flop_cost = packed, .compute_dtype = Dtype::fp4},
    OpRule{.name = "mslk::f8f8bf16", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_rowwise", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_rowwise_batched", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_tensorwise", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_blockwise", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_cublas", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_lite", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_groupwise", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_rowwise_grouped_stacked", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_rowwise_grouped_mm", .flop_cost = dense},
    OpRule{.name = "mslk::bf16bf16bf16_grouped_stacked", .flop_cost = dense},
    OpRule{.name = "mslk::bf16bf16bf16_grouped_mm", .flop_cost = dense},
    OpRule{.name = "mslk::mx8mx8bf16", .flop_cost = dense},
    OpRule{.name = "mslk::mx8mx8bf16_grouped_mm", .flop_cost = dense},
    OpRule{.name = "mslk::i8i8bf16", .flop_cost = dense},
    OpRule{.name = "mslk::f8i4bf16_rowwise", .flop_cost = dense},
    OpRule{.name = "mslk::bf16i4bf16_rowwise", .flop_cost = dense},
    OpRule{.name = "mslk::f8f8bf16_rowwise_grouped", .flop_cost = lists},
    OpRule{.name = "mslk::bf16bf16bf16_grouped", .flop_cost = lists},
    OpRule{.name = "mslk::f4f4bf16", .flop_cost = packed, .compute_dtype = Dtype::fp4},
};

// ten rows of three, four outputs: 2 * 10 * 3 * 4 FLOPs
constexpr OpExample worked(std::string_view op, std::string_view call, WideInt bytes) {
  return {.op = op, .call = call, .executed = 240, .model = 240, .bytes = bytes};
}

constexpr std::array examples = {
    worked("fbgemm::f8f8bf16", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_rowwise", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_rowwise_batched", "fp8[2,5,3] fp8[2,4,3]", 134),
    worked("fbgemm::f8f8bf16_tensorwise", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_blockwise", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_cublas", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_lite", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_groupwise", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::f8f8bf16_rowwise_grouped_stacked", "fp8[10,3] fp8[5,4,3]", 170),
    worked("fbgemm::f8f8bf16_rowwise_grouped_mm", "fp8[10,3] fp8[5,4,3]", 170),
    worked("fbgemm::bf16bf16bf16_grouped_stacked", "bf16[10,3] bf16[5,4,3]", 260),
    worked("fbgemm::bf16bf16bf16_grouped_mm", "bf16[10,3] bf16[5,4,3]", 260),
    worked("fbgemm::mx8mx8bf16", "fp8[10,3] fp8[4,3]", 122),
    worked("fbgemm::mx8mx8bf16_grouped_mm", "fp8[10,3] fp8[5,4,3]", 170),
    worked("fbgemm::i8i8bf16", "int8[10,3] int8[4,3]", 122),
    worked("fbgemm::f8i4bf16_rowwise", "fp8[10,3] int8[4,2]", 118),
    worked("fbgemm::bf16i4bf16_rowwise", "bf16[10,3] int8[4,2]", 148),
    worked("fbgemm::f8f8bf16_rowwise_grouped", "{fp8[7,3] fp8[3,3]} {fp8[4,3] fp8[4,3]}", 134),
    worked("fbgemm::bf16bf16bf16_grouped", "{bf16[7,3] bf16[3,3]} {bf16[4,3] bf16[4,3]}", 188),
    // two elements of four bits in a byte: 2 * 10 * 6 * 4
    OpExample{.op = "fbgemm::f4f4bf16",
              .call = "int8[10,3] int8[4,3]",
              .executed = 480,
              .model = 480,
              .bytes = 122},
    worked("mslk::f8f8bf16", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_rowwise", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_rowwise_batched", "fp8[2,5,3] fp8[2,4,3]", 134),
    worked("mslk::f8f8bf16_tensorwise", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_blockwise", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_cublas", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_lite", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_groupwise", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::f8f8bf16_rowwise_grouped_stacked", "fp8[10,3] fp8[5,4,3]", 170),
    worked("mslk::f8f8bf16_rowwise_grouped_mm", "fp8[10,3] fp8[5,4,3]", 170),
    worked("mslk::bf16bf16bf16_grouped_stacked", "bf16[10,3] bf16[5,4,3]", 260),
    worked("mslk::bf16bf16bf16_grouped_mm", "bf16[10,3] bf16[5,4,3]", 260),
    worked("mslk::mx8mx8bf16", "fp8[10,3] fp8[4,3]", 122),
    worked("mslk::mx8mx8bf16_grouped_mm", "fp8[10,3] fp8[5,4,3]", 170),
    worked("mslk::i8i8bf16", "int8[10,3] int8[4,3]", 122),
    worked("mslk::f8i4bf16_rowwise", "fp8[10,3] int8[4,2]", 118),
    worked("mslk::bf16i4bf16_rowwise", "bf16[10,3] int8[4,2]", 148),
    worked("mslk::f8f8bf16_rowwise_grouped", "{fp8[7,3] fp8[3,3]} {fp8[4,3] fp8[4,3]}", 134),
    worked("mslk::bf16bf16bf16_grouped", "{bf16[7,3] bf16[3,3]} {bf16[4,3] bf16[4,3]}", 188),
    // two elements of four bits in a byte: 2 * 10 * 6 * 4
    OpExample{.op = "mslk::f4f4bf16",
              .call = "int8[10,3] int8[4,3]",
              .executed = 480,
              .model = 480,
              .bytes = 122},
};

}  // namespace

extern constinit const OpFamily op_fbgemm{
    .name = "fbgemm",
    .help = "2 m n k; grouped: 2 x routed rows x n x k",
    .source = "fbgemm_gpu/experimental/gen_ai: schemas of the quantize and gemm operators",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
