// SPDX-License-Identifier: Apache-2.0
//
// flex_attention, which is one node of a compiled graph: [batch, heads, length, size].  A block
// mask selects pairs; what it selects is on the device, so that all pairs are an upper bound.  Not
// compiled, flex_attention consists of matmuls.
#include "attention_cost.h"

namespace flopmeter {
namespace {

/// query, key, value, and 1 if a block mask selects pairs.
constexpr AttentionPlaces forward{.query = 0, .mask_program = 3, .heads_first = true};
constexpr AttentionPlaces backward = backward_of(forward);

constexpr std::array rules = {
    attention_rule<forward>("higher_order::flex_attention"),
    attention_rule<backward>("higher_order::flex_attention_backward"),
};

// Sizes and costs of a pair as in attention.cpp, all 2 * 15 pairs.
constexpr std::array examples = {
    op_example("higher_order::flex_attention",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] -",
               3360,
               1232,
               AttentionPairs::exact),
    op_example("higher_order::flex_attention",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] 1",
               3360,
               1232,
               AttentionPairs::unknown),
    OpExample{.op = "higher_order::flex_attention_backward",
              .call = "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] 1",
              .executed = 8640,
              .model = 6720,
              .bytes = 2464,
              .pairs = AttentionPairs::unknown},
};

}  // namespace

extern constinit const OpFamily op_flex_attention{
    .name = "flex_attention",
    .help = "compiled flex_attention: attention over all pairs, an upper bound with a block mask",
    .source = "torch.nn.attention.flex_attention; FlashAttention-2, arXiv 2307.08691",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
