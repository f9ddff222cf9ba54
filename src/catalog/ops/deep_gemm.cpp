// SPDX-License-Identifier: Apache-2.0
//
// DeepGEMM 1 and 2.  An operand with scales is a tuple of both.  The rows of groups may be padded;
// the padding is executed.  Functions for fp8 also take fp4, two elements in a byte, and compute as
// fp8.
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
  const WideInt packing = a.dtype == Dtype::int8 ? 2 : 1;  // along the last extent
  const Flops work = {2 * d.elements() * (transposed ? a[0] : a[-1] * packing)};
  const WideInt bits = a.elements() * a.bits() + b.elements() * b.bits() + d.elements() * d.bits();
  return OpCost{.executed = work, .model = work, .bytes = {bits / 8}};
}

/// a, b, d [groups, m, n], and k of each group.
std::optional<OpCost> k_grouped(const OpCall& call) {
  const Arg a = operand(call.arg(0));
  const Arg b = operand(call.arg(1));
  const Arg d = call.arg(2);
  const Arg sizes = call.arg(3);
  if (!a.is_tensor() || !b.is_tensor() || !d.is_tensor(3) || !sizes.is_list()) return std::nullopt;
  WideInt k = 0;
  for (int i = 0; i < sizes.rank; ++i) k += sizes[i];
  const Flops work = {2 * WideInt{d[1]} * d[2] * k};
  const WideInt bits = a.elements() * a.bits() + b.elements() * b.bits() + d.elements() * d.bits();
  return OpCost{.executed = work, .model = work, .bytes = {bits / 8}};
}

constexpr OpRule function(std::string_view name, std::optional<OpCost> (*cost)(const OpCall&)) {
  OpRule rule{.name = name,
              .flop_cost = cost,
              .python = true,
              .place_of = place_in<"a|lhs b|rhs d|out ks|ks_cpu">};
  if (name.find("fp8") != std::string_view::npos) rule.compute_dtype = Dtype::fp8;
  return rule;
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
    function("deep_gemm::k_grouped_fp8_gemm_tn_contiguous", k_grouped),
    function("deep_gemm::k_grouped_fp8_gemm_nt_contiguous", k_grouped),
    function("deep_gemm::k_grouped_bf16_gemm_tn_contiguous", k_grouped),
    function("deep_gemm::gemm_fp8_fp8_bf16_nt", gemm<false>),  // release 1
    function("deep_gemm::m_grouped_gemm_fp8_fp8_bf16_nt_contiguous", gemm<false>),
    function("deep_gemm::m_grouped_gemm_fp8_fp8_bf16_nt_masked", unknown_cost),
    function("deep_gemm::wgrad_gemm_fp8_fp8_fp32_nt", unknown_cost),
    function("deep_gemm::k_grouped_wgrad_gemm_fp8_fp8_fp32_nt", unknown_cost),
    function("deep_gemm::m_grouped_fp8_gemm_nt_masked", unknown_cost),
    function("deep_gemm::m_grouped_bf16_gemm_nt_masked", unknown_cost),
    function("deep_gemm::m_grouped_fp8_fp4_gemm_nt_masked", unknown_cost),
    function("deep_gemm::fp8_m_grouped_gemm_nt_masked", unknown_cost),  // earlier names
    function("deep_gemm::bf16_m_grouped_gemm_nt_masked", unknown_cost),
    function("deep_gemm::fp8_gemm_nt_skip_head_mid", unknown_cost),
    function("deep_gemm::einsum", unknown_cost),
    function("deep_gemm::fp8_einsum", unknown_cost),
    function("deep_gemm::fp8_mqa_logits", unknown_cost),
    function("deep_gemm::fp8_paged_mqa_logits", unknown_cost),
    function("deep_gemm::fp8_fp4_mqa_logits", unknown_cost),
    function("deep_gemm::fp8_fp4_paged_mqa_logits", unknown_cost),
    function("deep_gemm::tf32_hc_prenorm_gemm", unknown_cost),
    function("deep_gemm::bf16_mega_moe", unknown_cost),
    function("deep_gemm::fp8_fp4_mega_moe", unknown_cost),
};

// ten rows of three, four outputs, or seven and three rows of both: 2 * 10 * 3 * 4 FLOPs
constexpr OpExample worked(std::string_view op, std::string_view call, WideInt bytes) {
  return op_example(op, call, 240, bytes);
}

constexpr std::array examples = {
    worked("deep_gemm::fp8_gemm_nt", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_gemm_nn", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_gemm_tn", "{fp8[3,10] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::fp8_gemm_tt", "{fp8[3,10] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::gemm_fp8_fp8_bf16_nt", "{fp8[10,3] [10]} {fp8[4,3] [4]} bf16[10,4]", 122),
    worked("deep_gemm::m_grouped_gemm_fp8_fp8_bf16_nt_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [4]} bf16[10,4] int32[10]",
           134),
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
           "{fp8[10,3] [10]} {fp8[2,4,3] [4]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::m_grouped_fp8_gemm_nn_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [4]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::m_grouped_bf16_gemm_nt_contiguous",
           "bf16[10,3] bf16[2,4,3] bf16[10,4] int32[10]",
           188),
    worked("deep_gemm::m_grouped_bf16_gemm_nn_contiguous",
           "bf16[10,3] bf16[2,4,3] bf16[10,4] int32[10]",
           188),
    worked("deep_gemm::m_grouped_fp8_fp4_gemm_nt_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [4]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::m_grouped_fp8_fp4_gemm_nn_contiguous",
           "{fp8[10,3] [10]} {fp8[2,4,3] [4]} bf16[10,4] int32[10]",
           134),
    worked("deep_gemm::k_grouped_fp8_gemm_tn_contiguous",
           "{fp8[30] [30]} {fp8[40] [40]} bf16[2,3,4] (7,3)",
           118),
    worked("deep_gemm::k_grouped_fp8_gemm_nt_contiguous",
           "{fp8[30] [30]} {fp8[40] [40]} bf16[2,3,4] (7,3)",
           118),
    worked(
        "deep_gemm::k_grouped_bf16_gemm_tn_contiguous", "bf16[30] bf16[40] bf16[2,3,4] (7,3)", 188),
    // fp4: 2 * 10 * 6 * 4
    op_example(
        "deep_gemm::fp8_fp4_gemm_nt", "{int8[10,3] [10]} {int8[4,3] [4]} bf16[10,4]", 480, 122),
};

}  // namespace

extern constinit const OpFamily op_deep_gemm{
    .name = "deep_gemm",
    .help = "2 x elements of the result x k; grouped along k: 2 m n x sum of k",
    .source =
        "csrc/apis/gemm.hpp of DeepGEMM, releases 2.1 to 2.6; deep_gemm/jit_kernels of release 1",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
