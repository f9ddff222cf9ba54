// SPDX-License-Identifier: Apache-2.0
//
// Fused scaled-dot-product attention of the dispatcher: queries, keys and values are [batch, heads,
// length, size].
//
// is_causal of a call with fewer queries than keys starts at the first key, as the documentation of
// scaled_dot_product_attention documents and its CPU kernel does; the flash operator ends with the
// last key (torch.nn.attention.bias, CausalVariant.LOWER_RIGHT).
#include "attention_cost.h"
#include "attention_examples.h"

#include <array>

namespace flopmeter {
namespace {

using At = AttentionPlaces;

constexpr std::array rules = {
    attention_rule<At{.causal = 4, .bottom_right = true, .heads_first = true}>(
        "aten::_scaled_dot_product_flash_attention"),
    attention_rule<At{.causal = 7, .bottom_right = true, .heads_first = true}>(
        "aten::_scaled_dot_product_flash_attention.quantized"),
    attention_rule<At{
        .query = 1, .causal = 11, .bottom_right = true, .heads_first = true, .backward = true}>(
        "aten::_scaled_dot_product_flash_attention_backward"),
    attention_rule<At{.mask = 5, .causal = 4, .heads_first = true}>(
        "aten::_scaled_dot_product_flash_attention_for_cpu"),
    attention_rule<At{.query = 1, .mask = 8, .causal = 7, .heads_first = true, .backward = true}>(
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward"),
    attention_rule<At{.mask = 3, .causal = 6, .heads_first = true}>(
        "aten::_scaled_dot_product_efficient_attention"),
    attention_rule<At{.query = 1, .mask = 4, .causal = 11, .heads_first = true, .backward = true}>(
        "aten::_scaled_dot_product_efficient_attention_backward"),
    attention_rule<At{.mask = 3, .causal = 6, .heads_first = true}>(
        "aten::_scaled_dot_product_cudnn_attention"),
    attention_rule<At{.query = 1, .mask = 8, .causal = 14, .heads_first = true, .backward = true}>(
        "aten::_scaled_dot_product_cudnn_attention_backward"),
    attention_rule<At{.mask = 3, .causal = 5, .heads_first = true}>(
        "aten::_scaled_dot_product_fused_attention_overrideable"),
    attention_rule<At{.query = 1, .mask = 4, .causal = 13, .heads_first = true, .backward = true}>(
        "aten::_scaled_dot_product_fused_attention_overrideable_backward"),
    attention_rule<At{.mask = 3, .causal = 5, .heads_first = true}>(
        "aten::_scaled_dot_product_attention_math_for_mps"),
};

// All pairs.
constexpr OpExample masked(std::string_view op, std::string_view call) {
  return op_example(op, call, 3360, 1232, AttentionPairs::full);
}

constexpr std::array examples = {
    causal("aten::_scaled_dot_product_flash_attention",
           "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - 1 0 -"),
    op_example("aten::_scaled_dot_product_flash_attention.quantized",
               "fp8[2,4,3,8] fp8[2,2,5,8] fp8[2,2,5,6] [1] [1] [1] - 1 0 -",
               2688,
               616,
               AttentionPairs::exact),
    causal_backward("aten::_scaled_dot_product_flash_attention_backward",
                    "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] bf16[2,4,3,6] "
                    "[2,4,3] - - 3 5 - 1 - - -"),
    from_first("aten::_scaled_dot_product_flash_attention_for_cpu",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - 1 - -"),
    masked("aten::_scaled_dot_product_flash_attention_for_cpu",
           "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - 0 [2,1,3,5] -"),
    from_first_backward(
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
        "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] bf16[2,4,3,6] [2,4,3] - 1 - -"),
    from_first("aten::_scaled_dot_product_efficient_attention",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - 1 - 1 -"),
    masked("aten::_scaled_dot_product_efficient_attention",
           "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] bf16[2,4,3,5] 1 - 0 -"),
    from_first_backward("aten::_scaled_dot_product_efficient_attention_backward",
                        "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - bf16[2,4,3,6] "
                        "[2,4,3] - - - (1,1,1,0) 1 -"),
    from_first("aten::_scaled_dot_product_cudnn_attention",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - 1 - 1 0 -"),
    from_first_backward("aten::_scaled_dot_product_cudnn_attention_backward",
                        "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] bf16[2,4,3,6] "
                        "[2,4,3] - - - - - 3 5 - 1 -"),
    from_first("aten::_scaled_dot_product_fused_attention_overrideable",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - - 1 0 -"),
    from_first_backward("aten::_scaled_dot_product_fused_attention_overrideable_backward",
                        "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - (1,1,1,0) "
                        "bf16[2,4,3,6] [2,4,3] - - 3 5 - 1 - - -"),
    from_first("aten::_scaled_dot_product_attention_math_for_mps",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - - 1 - - 0"),
};

}  // namespace

extern constinit const OpFamily op_attention{
    .name = "attention",
    .help =
        "P pairs, n query heads: 2 P n (d_qk + d_v) forward; backward twice that for the model, "
        "2 P n (3 d_qk + 2 d_v) as fused kernels execute it",
    .source =
        "FlashAttention-2, arXiv 2307.08691, sections 3.1 and 4.1; "
        "torch.nn.functional.scaled_dot_product_attention",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
