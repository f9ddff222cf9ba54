// SPDX-License-Identifier: Apache-2.0
//
// flash-linear-attention: the functions around its chunked Triton kernels.  The cost is that of the
// recurrence per token, independent of the chunks: two products with the state (write and read) for
// linear attention, four for delta rules.
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <array>

namespace flopmeter {
namespace {

/// q, k [batch, length, heads, d_k]; v [batch, length, value heads, d_v].
template <int per_element, int passes>
std::optional<OpCost> scan(const OpCall& call) {
  const Arg q = call.arg(0);
  const Arg k = call.arg(1);
  const Arg v = call.arg(2);
  if (!k.is_tensor(4) || !v.is_tensor(4)) return std::nullopt;
  const Flops work = {WideInt{passes} * per_element * v.elements() * k[3]};
  const WideInt elements = (q.is_tensor(4) ? q.elements() : 0) + k.elements() + 2 * v.elements();
  return OpCost{.executed = work, .model = work, .bytes = {passes * elements * v.bits() / 8}};
}

template <int per_element, int passes>
constexpr OpRule function(std::string_view name) {
  return {.name = name,
          .flop_cost = scan<per_element, passes>,
          .dtype_argument = 2,
          .python = true,
          .place_of = place_in<"q k v">};
}

constexpr std::array rules = {
    function<4, 1>("fla.ops.gla.chunk::chunk_gla_fwd"),
    function<4, 2>("fla.ops.gla.chunk::chunk_gla_bwd"),
    function<4, 1>("fla.ops.simple_gla.chunk::chunk_simple_gla_fwd"),
    function<4, 2>("fla.ops.simple_gla.chunk::chunk_simple_gla_bwd"),
    function<8, 1>("fla.ops.delta_rule.chunk::chunk_delta_rule_fwd"),
    function<8, 2>("fla.ops.delta_rule.chunk::chunk_delta_rule_bwd"),
    function<8, 1>("fla.ops.gated_delta_rule.chunk::chunk_gated_delta_rule_fwd"),
    function<8, 2>("fla.ops.gated_delta_rule.chunk::chunk_gated_delta_rule_bwd"),
    function<8, 1>("fla.ops.kda.chunk::chunk_kda_fwd"),
    function<8, 2>("fla.ops.kda.chunk::chunk_kda_bwd"),
    function<8, 1>("fla.ops.kda.chunk_fwd::chunk_kda_fwd"),
    function<8, 2>("fla.ops.kda.chunk_bwd::chunk_kda_bwd"),
    function<8, 1>("fla.ops.gdn2.chunk_fwd::chunk_gdn2_fwd"),
    function<8, 2>("fla.ops.gdn2.chunk_bwd::chunk_gdn2_bwd"),
    function<8, 1>("fla.ops.comba.chunk::chunk_comba_fwd"),
    function<8, 2>("fla.ops.comba.chunk::chunk_comba_bwd"),
};

// 2 x 3 tokens, 4 heads, d_k = 8, d_v = 5: 6 * 4 * 8 * 5 = 960 elements of work; 192 + 192 + 2 *
// 120 elements of memory
constexpr OpExample worked(std::string_view op, WideInt per_element, WideInt passes) {
  return op_example(
      op, "bf16[2,3,4,8] bf16[2,3,4,8] bf16[2,3,4,5]", passes * per_element * 960, passes * 1248);
}

constexpr std::array examples = {
    worked("fla.ops.gla.chunk::chunk_gla_fwd", 4, 1),
    worked("fla.ops.gla.chunk::chunk_gla_bwd", 4, 2),
    worked("fla.ops.simple_gla.chunk::chunk_simple_gla_fwd", 4, 1),
    worked("fla.ops.simple_gla.chunk::chunk_simple_gla_bwd", 4, 2),
    worked("fla.ops.delta_rule.chunk::chunk_delta_rule_fwd", 8, 1),
    worked("fla.ops.delta_rule.chunk::chunk_delta_rule_bwd", 8, 2),
    worked("fla.ops.gated_delta_rule.chunk::chunk_gated_delta_rule_fwd", 8, 1),
    worked("fla.ops.gated_delta_rule.chunk::chunk_gated_delta_rule_bwd", 8, 2),
    worked("fla.ops.kda.chunk::chunk_kda_fwd", 8, 1),
    worked("fla.ops.kda.chunk::chunk_kda_bwd", 8, 2),
    worked("fla.ops.kda.chunk_fwd::chunk_kda_fwd", 8, 1),
    worked("fla.ops.kda.chunk_bwd::chunk_kda_bwd", 8, 2),
    worked("fla.ops.gdn2.chunk_fwd::chunk_gdn2_fwd", 8, 1),
    worked("fla.ops.gdn2.chunk_bwd::chunk_gdn2_bwd", 8, 2),
    worked("fla.ops.comba.chunk::chunk_comba_fwd", 8, 1),
    worked("fla.ops.comba.chunk::chunk_comba_bwd", 8, 2),
};

}  // namespace

extern constinit const OpFamily op_fla{
    .name = "fla",
    .help =
        "4 x tokens x heads x d_k x d_v forward for linear attention, 8 for delta rules; backward "
        "twice that",
    .source = "Megatron-LM, megatron/training/training.py, FLOPs of a gated delta rule",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
