// SPDX-License-Identifier: Apache-2.0
//
// TransformerEngine 2: functions of its extension module.  GEMMs are column-major: A is the weight
// and B the input of a layer, and the result has the outer extents of B, then those of A.  fp8 and
// fp4 operands keep their logical extents.  A grouped tensor has the extents [groups, rows of all
// groups, columns]; its rows may include unused ones, because the device knows their number.  MXFP8
// operands, which are computed as fast as other fp8 ones, have their own rows.  Attention (cuDNN)
// names mask and layout by enumerations.
#include "attention_cost.h"
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// A, transpose A, B, transpose B.
std::optional<OpCost> gemm(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(2);
  const Arg transpose_b = call.arg(3);
  if (!a.is_tensor() || !b.is_tensor() || a.rank == 0 || b.rank == 0 || !transpose_b.is_number())
    return std::nullopt;
  const bool transpose_a = call.arg(1).number_or(0) != 0;
  const WideInt k = transpose_a ? a[-1] : a.elements() / std::max<std::int64_t>(a[-1], 1);
  if (k == 0) return std::nullopt;
  const WideInt columns =
      transpose_b.integer != 0 ? WideInt{b[-1]} : b.elements() / std::max<std::int64_t>(b[-1], 1);
  return matmul_cost(Matmul{.m = a.elements() / k, .n = columns, .k = k}, a);
}

/// A per group, transpose A, B per group, transpose B, rows of each group.
std::optional<OpCost> grouped_gemm(const OpCall& call) {
  const Arg as = call.arg(0);
  const Arg bs = call.arg(2);
  const Arg splits = call.arg(4);
  if (as.kind != Arg::Kind::tensors || bs.kind != Arg::Kind::tensors || as.rank == 0 ||
      bs.rank == 0 || !splits.is_list() || !call.arg(3).is_number())
    return std::nullopt;
  const Arg a = as.items[0];
  const Arg b = bs.items[0];
  if (!a.is_tensor(2) || !b.is_tensor() || b.rank == 0) return std::nullopt;
  GroupedMatmul op{.groups = as.rank};
  for (int i = 0; i < splits.rank; ++i) op.rows += splits[i];
  if (call.arg(3).integer == 0) {  // forward and the input's gradient: A is a weight
    op.n = a[0];
    op.k = a[1];
  } else {  // the weight's gradient: A is the input, B the gradient of the output
    op.n = b[-1];
    op.k = a[-1];
  }
  return OpCost{.executed = flops(op), .model = flops(op), .bytes = bytes_moved(op, a.dtype)};
}

/// A, a grouped tensor or one tensor per group, transpose A, B, a grouped tensor, transpose B.
std::optional<OpCost> grouped_tensor_gemm(const OpCall& call) {
  const Arg a = call.arg(0);
  const Arg b = call.arg(2);
  if (!b.is_tensor(3) || !call.arg(3).is_number()) return std::nullopt;
  GroupedMatmul op{.groups = b[0], .rows = b[1]};
  if (a.kind == Arg::Kind::tensors && a.rank > 0 && a.items[0].is_tensor(2)) {
    op.n = a.items[0][0];
    op.k = a.items[0][1];
  } else if (!a.is_tensor(3) || a[0] == 0) {
    return std::nullopt;
  } else if (call.arg(3).integer == 0) {  // A is the weights
    op.n = a[1] / a[0];
    op.k = a[2];
  } else {  // the gradient of the weights: A is the input, B the gradient of the output
    op.n = b[2];
    op.k = a[2];
  }
  return OpCost{.executed = flops(op),
                .model = flops(op),
                .bytes = bytes_moved(op, b.dtype),
                .bounded = true};
}

/// Bits of enumerations: the words in the name of their value.
constexpr std::int64_t is_causal = 1;
constexpr std::int64_t is_bottom_right = 2;
constexpr std::int64_t is_padded = 4;
constexpr std::int64_t is_packed = 8;

/// Longest queries, longest keys, layout, mask, window, starts of queries and keys, query, key,
/// value, and whether the diagonal ends at the last key.
constexpr int starts_at = 5;
constexpr int query_at = 7;

AttentionBand band_of(const OpCall& call) {
  const std::int64_t mask = call.arg(3).number_or(0);
  const Arg window = call.arg(4);
  const bool limited = window.is_list() && window.rank == 2;
  return {.left = limited ? window[0] : -1,
          .right = (mask & is_causal) != 0 ? 0 : (limited ? window[1] : -1),
          .bottom_right = (mask & is_bottom_right) != 0 || call.arg(10).number_or(0) != 0};
}

template <bool backward>
std::optional<OpCost> attention(const OpCall& call) {
  const Arg longest_q = call.arg(0);
  const Arg longest_k = call.arg(1);
  const std::int64_t layout = call.arg(2).number_or(0);
  const std::int64_t mask = call.arg(3).number_or(0);
  const Arg starts = call.arg(starts_at);
  const Arg q = call.arg(query_at);
  const Arg k = call.arg(query_at + 1);
  const Arg v = call.arg(query_at + 2);
  if (!longest_q.is_number() || !longest_k.is_number() || !starts.is_tensor(1) || starts[0] == 0)
    return std::nullopt;
  for (const Arg& each : {q, k, v}) {
    if (!each.is_tensor() || each.rank < 2) return std::nullopt;
  }
  const std::int64_t queries = longest_q.integer;
  const std::int64_t keys = longest_k.integer;
  const WideInt batch = starts[0] - 1;
  const Attention op{.pairs = batch * band_of(call).pairs(queries, keys),
                     .heads = q[-2],
                     .kv_heads = k[-2],
                     .d_qk = q[-1],
                     .d_v = v[-1],
                     .queries = batch * queries,
                     .keys = batch * keys};
  const bool bounded = (mask & is_padded) != 0 || (layout & is_packed) != 0;
  return cost_of(op, q.dtype, backward, bounded ? AttentionPairs::unknown : AttentionPairs::exact);
}

/// Of a call that attention() supports.
template <bool backward>
std::optional<PackedWork> packed_attention(const OpCall& call) {
  const Arg q = call.arg(query_at);
  const Attention one{.pairs = 1, .heads = q[-2], .d_qk = q[-1], .d_v = call.arg(query_at + 2)[-1]};
  return PackedWork{.queries_at = starts_at,
                    .keys_at = starts_at + 1,
                    .unit = cost_of(one, q.dtype, backward, AttentionPairs::exact),
                    .band = band_of(call),
                    .backward = backward};
}

consteval CallLayout release(
    int arguments, int layout, int mask, int window, int starts, int query, int bottom_right = -1) {
  const auto at = [](int place) { return static_cast<std::int8_t>(place); };
  return {.arguments = arguments,
          .places = {0,
                     1,
                     at(layout),
                     at(mask),
                     at(window),
                     at(starts),
                     at(starts + 1),
                     at(query),
                     at(query + 1),
                     at(query + 2),
                     at(bottom_right),
                     -1,
                     -1,
                     -1,
                     -1,
                     -1}};
}
constexpr std::array forward = {
    release(23, 6, 8, 9, 10, 12),
    release(25, 6, 8, 9, 10, 12),
    release(27, 6, 8, 10, 11, 13),
    release(28, 6, 8, 10, 11, 13),
    release(29, 6, 8, 10, 11, 13),
    release(30, 6, 8, 10, 12, 14, 11),
    release(32, 6, 10, 12, 14, 16, 13),
};
constexpr std::array backward = {
    release(25, 5, 7, 8, 10, 12),
    release(26, 5, 7, 9, 11, 13),
    release(27, 5, 7, 9, 11, 13),
    release(28, 5, 7, 9, 12, 14, 10),
    release(32, 5, 12, 14, 17, 19, 15),
};
constexpr std::array grouped = {
    CallLayout{.arguments = 17,
               .places = {0, 1, 2, 3, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}},
};

constexpr OpRule gemm_rule(std::string_view name) {
  return {
      .name = name, .flop_cost = gemm, .python = true, .place_of = place_in<"A transa B transb">};
}
constexpr OpRule grouped_gemm_rule(std::string_view name) {
  return {.name = name, .flop_cost = grouped_gemm, .python = true, .layouts = grouped};
}

constexpr OpRule grouped_tensor_rule(std::string_view name) {
  return {.name = name,
          .flop_cost = grouped_tensor_gemm,
          .dtype_argument = 2,
          .python = true,
          .place_of = place_in<"A transa B transb">};
}

constexpr std::array rules = {
    gemm_rule("transformer_engine_torch::generic_gemm"),
    gemm_rule("transformer_engine_torch::generic_gemm.mxfp8"),
    grouped_gemm_rule("transformer_engine_torch::te_general_grouped_gemm"),
    grouped_gemm_rule("transformer_engine_torch::te_general_grouped_gemm.mxfp8"),
    OpRule{.name = "transformer_engine_torch::fused_attn_fwd",
           .flop_cost = attention<false>,
           .dtype_argument = query_at,
           .python = true,
           .layouts = forward,
           .packed = packed_attention<false>},
    OpRule{.name = "transformer_engine_torch::fused_attn_bwd",
           .flop_cost = attention<true>,
           .dtype_argument = query_at,
           .python = true,
           .layouts = backward,
           .packed = packed_attention<true>},
    // Matmuls of an optimizer, distributed over processes.
    OpRule{.name = "transformer_engine_torch::newton_schulz",
           .flop_cost = unknown_cost,
           .python = true},
    grouped_tensor_rule("transformer_engine_torch::te_general_grouped_gemm_for_grouped_tensor"),
    grouped_tensor_rule(
        "transformer_engine_torch::te_general_grouped_gemm_for_grouped_tensor.mxfp8"),
    grouped_tensor_rule("transformer_engine_torch::te_general_grouped_gemm_for_discrete_in"),
    grouped_tensor_rule("transformer_engine_torch::te_general_grouped_gemm_for_discrete_in.mxfp8"),
    grouped_tensor_rule("transformer_engine_torch::te_general_grouped_gemm_for_discrete_out"),
    grouped_tensor_rule("transformer_engine_torch::te_general_grouped_gemm_for_discrete_out.mxfp8"),
};

// at most ten rows of three in two groups, four outputs
constexpr OpExample worked_grouped(std::string_view op, std::string_view call, WideInt bytes) {
  return {.op = op, .call = call, .executed = 240, .model = 240, .bytes = bytes, .bounded = true};
}

constexpr std::array examples = {
    // ten rows of three, four outputs: 2 * 10 * 3 * 4 FLOPs; 12 + 30 + 40 elements
    op_example("transformer_engine_torch::generic_gemm", "bf16[4,3] 1 bf16[2,5,3] 0", 240, 164),
    // the gradient of the weight: input [10, 3], gradient [10, 4]
    op_example("transformer_engine_torch::generic_gemm", "fp8[10,3] 0 fp8[10,4] 1", 240, 82),
    op_example("transformer_engine_torch::generic_gemm.mxfp8", "fp8[4,3] 1 fp8[10,3] 0", 240, 82),
    op_example("transformer_engine_torch::te_general_grouped_gemm.mxfp8",
               "{fp8[4,3] fp8[4,3]} 1 {fp8[7,3] fp8[3,3]} 0 (7,3)",
               240,
               94),
    // seven and three rows
    op_example("transformer_engine_torch::te_general_grouped_gemm",
               "{bf16[4,3] bf16[4,3]} 1 {bf16[7,3] bf16[3,3]} 0 (7,3)",
               240,
               188),
    op_example("transformer_engine_torch::te_general_grouped_gemm",
               "{bf16[7,3] bf16[3,3]} 0 {bf16[7,4] bf16[3,4]} 1 (7,3)",
               240,
               188),
    worked_grouped("transformer_engine_torch::te_general_grouped_gemm_for_grouped_tensor",
                   "bf16[2,8,3] 1 bf16[2,10,3] 0",
                   188),
    worked_grouped("transformer_engine_torch::te_general_grouped_gemm_for_grouped_tensor.mxfp8",
                   "fp8[2,10,3] 0 fp8[2,10,4] 1",
                   94),
    worked_grouped("transformer_engine_torch::te_general_grouped_gemm_for_discrete_in",
                   "{bf16[4,3] bf16[4,3]} 0 bf16[2,10,4] 0",
                   188),
    worked_grouped("transformer_engine_torch::te_general_grouped_gemm_for_discrete_in.mxfp8",
                   "{fp8[4,3] fp8[4,3]} 1 fp8[2,10,3] 0",
                   94),
    worked_grouped("transformer_engine_torch::te_general_grouped_gemm_for_discrete_out",
                   "bf16[2,10,3] 0 bf16[2,10,4] 1",
                   188),
    worked_grouped("transformer_engine_torch::te_general_grouped_gemm_for_discrete_out.mxfp8",
                   "fp8[2,10,3] 0 fp8[2,10,4] 1",
                   94),
    // sizes as in attention.cpp: a pair costs 112 forward, 224 and 288 backward; 24 and 12 pairs
    op_example("transformer_engine_torch::fused_attn_fwd",
               "3 5 0 3 (-1,-1) int32[3] int32[3] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6]",
               2688,
               1232,
               AttentionPairs::exact),
    op_example("transformer_engine_torch::fused_attn_fwd",
               "3 5 0 1 (-1,-1) int32[3] int32[3] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6]",
               1344,
               1232,
               AttentionPairs::exact),
    // packed: at most 24 pairs
    OpExample{.op = "transformer_engine_torch::fused_attn_bwd",
              .call = "3 5 8 7 (-1,0) int32[3] int32[3] bf16[6,4,8] bf16[9,2,8] bf16[9,2,6]",
              .executed = 6912,
              .model = 5376,
              .bytes = 2464,
              .pairs = AttentionPairs::unknown},
};

}  // namespace

extern constinit const OpFamily op_transformer_engine{
    .name = "transformer_engine",
    .help =
        "GEMMs, grouped GEMMs, and attention of TransformerEngine 2; fp8, MXFP8, and fp4 by "
        "operand",
    .source =
        "transformer_engine/pytorch/csrc/extensions/gemm.cpp and attention.cpp, releases 2.0 to "
        "2.20",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
