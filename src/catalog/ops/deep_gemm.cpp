// SPDX-License-Identifier: Apache-2.0
//
// DeepGEMM 2.  An operand with scales is a tuple of both.  The rows of groups may be padded; the
// padding is executed.
#include "matmul_cost.h"

#include <array>

namespace flopmeter {
namespace {

/// The tensor of an operand that may come with its scales.
Arg operand(const Arg& arg) {
  return arg.kind == Arg::Kind::tensors && arg.rank > 0 ? arg.items[0] : arg;
}

/// a, b, d: the result has all outer extents.
template <bool transposed>
std::optional<OpCost> gemm(const OpCall& call) {
  const Arg a = operand(call.arg(0));
  const Arg b = operand(call.arg(1));
  const Arg d = call.arg(2);
  if (!a.is_tensor() || a.rank < 2 || !b.is_tensor() || !d.is_tensor()) return std::nullopt;
  const Flops work = {2 * d.elements() * a[transposed ? 0 : -1]};
  const WideInt bits = a.elements() * a.bits() + b.elements() * b.bits() + d.elements() * d.bits();
  return OpCost{.executed = work, .model = work, .bytes = {bits / 8}};
}

constexpr OpRule function(std::string_view name, std::optional<OpCost> (*cost)(const OpCall&)) {
  return {
      .name = name, .flop_cost = cost, .python = true, .place_of = place_in<"a|lhs b|rhs d|out">};
}

constexpr std::array rules = {
    function("deep_gemm::fp8_gemm_nt", gemm<false>),
    function("deep_gemm::fp8_gemm_nn", gemm<false>),
    function("deep_gemm::fp8_gemm_tn", gemm<true>),
    function("deep_gemm::fp8_gemm_tt", gemm<true>),
    function("deep_gemm::bf16_gemm_nt", gemm<false>),
    function("deep_gemm::bf16_gemm_nn", gemm<false>),
    function("deep_gemm::bf16_gemm_tn", gemm<true>),
    function("deep_gemm::bf16_gemm_tt", gemm<true>),
    function("deep_gemm::fp8_fp4_gemm_nt", gemm<false>),
    function("deep_gemm::fp8_fp4_gemm_nn", gemm<false>),
    function("deep_gemm::fp8_fp4_gemm_tn", gemm<true>),
    function("deep_gemm::fp8_fp4_gemm_tt", gemm<true>),
    function("deep_gemm::cublaslt_gemm_nt", gemm<false>),
    function("deep_gemm::cublaslt_gemm_nn", gemm<false>),
    function("deep_gemm::cublaslt_gemm_tn", gemm<true>),
    function("deep_gemm::cublaslt_gemm_tt", gemm<true>),
    function("deep_gemm::m_grouped_fp8_gemm_nt_contiguous", gemm<false>),
    function("deep_gemm::m_grouped_fp8_gemm_nn_contiguous", gemm<false>),
    function("deep_gemm::m_grouped_bf16_gemm_nt_contiguous", gemm<false>),
    function("deep_gemm::m_grouped_bf16_gemm_nn_contiguous", gemm<false>),
    function("deep_gemm::m_grouped_fp8_fp4_gemm_nt_contiguous", gemm<false>),
    function("deep_gemm::m_grouped_fp8_fp4_gemm_nn_contiguous", gemm<false>),
    OpRule{.name = "deep_gemm::m_grouped_fp8_gemm_nt_masked",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::k_grouped_fp8_gemm_tn_contiguous",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::k_grouped_fp8_gemm_nt_contiguous",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::m_grouped_bf16_gemm_nt_masked",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::k_grouped_bf16_gemm_tn_contiguous",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::k_grouped_bf16_gemm_nt_contiguous",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::m_grouped_fp8_fp4_gemm_nt_masked",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::k_grouped_fp8_fp4_gemm_tn_contiguous",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::k_grouped_fp8_fp4_gemm_nt_contiguous",
           .flop_cost = unknown_cost,
           .python = true},
    OpRule{.name = "deep_gemm::fp8_mega_moe", .flop_cost = unknown_cost, .python = true},
    OpRule{.name = "deep_gemm::bf16_mega_moe", .flop_cost = unknown_cost, .python = true},
    OpRule{.name = "deep_gemm::fp8_fp4_mega_moe", .flop_cost = unknown_cost, .python = true},
};

// ten rows of three, four outputs: 2 * 10 * 3 * 4 FLOPs
constexpr OpExample worked(std::string_view op, std::string_view call, WideInt bytes) {
  return {.op = op, .call = call, .executed = 240, .model = 240, .bytes = bytes};
}

constexpr std::array examples = {
    worked("deep_gemm::fp8_gemm_nt", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_gemm_nn", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_gemm_tn", "{fp8[3,10] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_gemm_tt", "{fp8[3,10] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::bf16_gemm_nt", "bf16[10,3] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::bf16_gemm_nn", "bf16[10,3] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::bf16_gemm_tn", "bf16[3,10] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::bf16_gemm_tt", "bf16[3,10] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::fp8_fp4_gemm_nt", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_fp4_gemm_nn", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_fp4_gemm_tn", "{fp8[3,10] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_fp4_gemm_tt", "{fp8[3,10] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::cublaslt_gemm_nt", "bf16[10,3] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::cublaslt_gemm_nn", "bf16[10,3] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::cublaslt_gemm_tn", "bf16[3,10] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::cublaslt_gemm_tt", "bf16[3,10] bf16[4,3] bf16[10,4]", 164),
    worked("deep_gemm::m_grouped_fp8_gemm_nt_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [8]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::m_grouped_fp8_gemm_nn_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [8]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::m_grouped_bf16_gemm_nt_contiguous",
           "bf16[10,3] bf16[2,4,3] bf16[10,4] int32[10]",
           188),
    worked("deep_gemm::m_grouped_bf16_gemm_nn_contiguous",
           "bf16[10,3] bf16[2,4,3] bf16[10,4] int32[10]",
           188),
    worked("deep_gemm::m_grouped_fp8_fp4_gemm_nt_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [8]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::m_grouped_fp8_fp4_gemm_nn_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [8]} bf16[10,4] int32[10]",
           134),
};

}  // namespace

extern constinit const OpFamily op_deep_gemm{
    .name = "deep_gemm",
    .help = "2 x elements of the result x k; masked and k-grouped GEMMs are unsupported",
    .source = "deep_gemm's Python interface, release 2.1",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
