// SPDX-License-Identifier: Apache-2.0
//
// The attention kernels below scaled_dot_product_attention: [batch, length, heads, size], or
// sequences packed one after the other with tensors of their start positions.  Causal masks and
// windows are aligned at the last position (flash-attn's documentation of `causal`).
#include "attention_cost.h"
#include "attention_examples.h"

#include <array>

namespace flopmeter {
namespace {

using At = AttentionPlaces;

constexpr std::array rules = {
    attention_rule<At{.starts = 3,
                      .longest = 5,
                      .used = 13,
                      .pages = 15,
                      .causal = 8,
                      .window = 11,
                      .bottom_right = true}>("aten::_flash_attention_forward"),
    attention_rule<At{
        .starts = 3, .longest = 5, .used = 16, .causal = 8, .window = 14, .bottom_right = true}>(
        "aten::_flash_attention_forward.quantized"),
    attention_rule<At{.query = 1,
                      .starts = 4,
                      .longest = 6,
                      .used = 14,
                      .pages = 16,
                      .causal = 9,
                      .window = 12,
                      .bottom_right = true}>("aten::_flash_attention_forward_no_dropout_inplace"),
    attention_rule<At{.query = 1,
                      .starts = 6,
                      .longest = 8,
                      .causal = 11,
                      .window = 15,
                      .bottom_right = true,
                      .backward = true}>("aten::_flash_attention_backward"),
    attention_rule<At{
        .mask = 3, .starts = 4, .longest = 6, .used = 12, .causal = 9, .causal_window = 13}>(
        "aten::_efficient_attention_forward"),
    attention_rule<At{.query = 1,
                      .mask = 4,
                      .starts = 6,
                      .longest = 8,
                      .causal = 14,
                      .causal_window = 18,
                      .backward = true}>("aten::_efficient_attention_backward"),
    attention_rule<At{.mask = 3, .starts = 4, .longest = 6, .causal = 10, .heads_first = true}>(
        "aten::_cudnn_attention_forward"),
    attention_rule<At{.query = 1,
                      .mask = 8,
                      .starts = 9,
                      .longest = 11,
                      .causal = 14,
                      .heads_first = true,
                      .backward = true}>("aten::_cudnn_attention_backward"),
};

constexpr std::array examples = {
    causal("aten::_flash_attention_forward",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 3 5 - 1 0 - - - - - - -"),
    from_first("aten::_flash_attention_forward",
               "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 3 5 - 1 0 - 1 0 - - - -"),
    packed("aten::_flash_attention_forward",
           "bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] [3] [3] 5 5 - 1 0 - - - - - - -"),
    // ten tokens in two sequences of at most five: both have five
    op_example("aten::_flash_attention_forward",
               "bf16[10,4,8] bf16[10,2,8] bf16[10,2,6] [3] [3] 5 5 - 1 0 - - - - - - -",
               3360,
               1680,
               AttentionPairs::exact),
    op_example("aten::_flash_attention_forward.quantized",
               "fp8[2,3,4,8] fp8[2,5,2,8] fp8[2,5,2,6] - - 3 5 - 1 0 [1] [1] [1] - - - - -",
               2688,
               616,
               AttentionPairs::exact),
    causal("aten::_flash_attention_forward_no_dropout_inplace",
           "bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 3 5 - 1 0 - - - - - - -"),
    packed_backward("aten::_flash_attention_backward",
                    "bf16[7,4,6] bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] bf16[7,4,6] [4,7] [3] [3] 5 5 "
                    "- 1 - - - - -"),
    // mask type 2: causal up to the last key; 1: from the first
    causal("aten::_efficient_attention_forward",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - 2 1 - - -"),
    from_first("aten::_efficient_attention_forward",
               "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - 1 1 - - -"),
    // the same window of two keys, the query's own included
    from_first("aten::_efficient_attention_forward",
               "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - 2 1 - - 2"),
    causal_backward("aten::_efficient_attention_backward",
                    "bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - bf16[2,3,4,6] - - 3 "
                    "5 [2,4,3] - - - 2 0 - - - 0"),
    from_first("aten::_cudnn_attention_forward",
               "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - - - 3 5 1 - 1 0 -"),
    from_first_backward("aten::_cudnn_attention_backward",
                        "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] bf16[2,4,3,6] "
                        "[2,4,3] - - - - - 3 5 - 1 -"),
};

}  // namespace

extern constinit const OpFamily op_flash_attention{
    .name = "flash_attention",
    .help = "attention kernels with packed sequences and windows; supported as attention",
    .source = "FlashAttention-2, arXiv 2307.08691; arguments as in the schemas of torch 2.13",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
