// SPDX-License-Identifier: Apache-2.0
//
// The attention kernels below scaled_dot_product_attention, and those of the flash-attn and
// xFormers packages: [batch, length, heads, size], or sequences packed one after the other with
// tensors of their start positions. Causal masks and windows are aligned at the last position
// (flash-attn's documentation of `causal`).
#include "attention_cost.h"

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
    attention_rule<At{.causal = 5, .window = 6, .bottom_right = true}>(
        "flash_attn::_flash_attn_forward"),
    attention_rule<At{
        .query = 1, .causal = 11, .window = 12, .bottom_right = true, .backward = true}>(
        "flash_attn::_flash_attn_backward"),
    attention_rule<At{.starts = 3,
                      .longest = 5,
                      .used = 17,
                      .pages = 15,
                      .causal = 9,
                      .window = 10,
                      .bottom_right = true}>("flash_attn::_flash_attn_varlen_forward"),
    attention_rule<At{.query = 1,
                      .starts = 9,
                      .longest = 11,
                      .causal = 15,
                      .window = 16,
                      .bottom_right = true,
                      .backward = true}>("flash_attn::_flash_attn_varlen_backward"),
    attention_rule<At{.starts = 7,
                      .longest = 12,
                      .used = 11,
                      .pages = 14,
                      .chunk = 27,
                      .causal = 24,
                      .window = 25,
                      .bottom_right = true}>("flash_attn_3::fwd"),
    attention_rule<At{.query = 1,
                      .starts = 9,
                      .longest = 13,
                      .used = 12,
                      .causal = 16,
                      .window = 17,
                      .bottom_right = true,
                      .backward = true}>("flash_attn_3::bwd"),
    attention_rule<At{.starts = 3,
                      .longest = 6,
                      .used = 5,
                      .pages = 14,
                      .causal = 10,
                      .window = 11,
                      .bottom_right = true}>("xformers_flash::flash_fwd"),
    attention_rule<At{.query = 2,
                      .starts = 7,
                      .longest = 9,
                      .causal = 13,
                      .window = 14,
                      .bottom_right = true,
                      .backward = true}>("xformers_flash::flash_bwd"),
};

constexpr auto exact = AttentionPairs::exact;
constexpr auto unknown = AttentionPairs::unknown;

// Sizes and costs of a pair as in attention.cpp: 112 forward, 224 for the model's backward, 288
// executed.
//
// Two sequences of three queries and five keys, causal: 2 * (3 + 4 + 5) = 24 pairs; with a window
// of one key back 2 * 3 * 2 = 12.  Seven tokens in two packed sequences, the longest five, causal:
// at most 2 * 15 = 30 pairs; (7 * 4 + 7 * 2) * 14 elements.
constexpr OpExample windowed_or_from_first(std::string_view op, std::string_view call) {
  return {.op = op, .call = call, .executed = 1344, .model = 1344, .bytes = 1232, .pairs = exact};
}
constexpr OpExample causal(std::string_view op, std::string_view call) {
  return {.op = op, .call = call, .executed = 2688, .model = 2688, .bytes = 1232, .pairs = exact};
}
constexpr OpExample causal_backward(std::string_view op, std::string_view call) {
  return {.op = op, .call = call, .executed = 6912, .model = 5376, .bytes = 2464, .pairs = exact};
}
constexpr OpExample packed(std::string_view op, std::string_view call) {
  return {.op = op, .call = call, .executed = 3360, .model = 3360, .bytes = 1176, .pairs = unknown};
}
constexpr OpExample packed_backward(std::string_view op, std::string_view call) {
  return {.op = op, .call = call, .executed = 8640, .model = 6720, .bytes = 2352, .pairs = unknown};
}

constexpr std::array examples = {
    causal("aten::_flash_attention_forward",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 3 5 - 1 0 - - - - - - -"),
    windowed_or_from_first("aten::_flash_attention_forward",
                           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 3 5 - 1 0 - 1 0 - - - -"),
    packed("aten::_flash_attention_forward",
           "bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] [3] [3] 5 5 - 1 0 - - - - - - -"),
    // ten tokens in two sequences of at most five: both have five
    OpExample{.op = "aten::_flash_attention_forward",
              .call = "bf16[10,4,8] bf16[10,2,8] bf16[10,2,6] [3] [3] 5 5 - 1 0 - - - - - - -",
              .executed = 3360,
              .model = 3360,
              .bytes = 1680,
              .pairs = exact},
    OpExample{.op = "aten::_flash_attention_forward.quantized",
              .call = "fp8[2,3,4,8] fp8[2,5,2,8] fp8[2,5,2,6] - - 3 5 - 1 0 [1] [1] [1] - - - - -",
              .executed = 2688,
              .model = 2688,
              .bytes = 616,
              .pairs = exact},
    causal("aten::_flash_attention_forward_no_dropout_inplace",
           "bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 3 5 - 1 0 - - - - - - -"),
    packed_backward("aten::_flash_attention_backward",
                    "bf16[7,4,6] bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] bf16[7,4,6] [4,7] [3] [3] 5 5 "
                    "- 1 - - - - -"),
    // mask type 2: causal up to the last key; 1: from the first
    causal("aten::_efficient_attention_forward",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - 2 1 - - -"),
    windowed_or_from_first("aten::_efficient_attention_forward",
                           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - 1 1 - - -"),
    // the same window of two keys, the query's own included
    windowed_or_from_first("aten::_efficient_attention_forward",
                           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - 2 1 - - 2"),
    causal_backward("aten::_efficient_attention_backward",
                    "bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - bf16[2,3,4,6] - - 3 "
                    "5 [2,4,3] - - - 2 0 - - - 0"),
    windowed_or_from_first("aten::_cudnn_attention_forward",
                           "bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] - - - 3 5 1 - 1 0 -"),
    OpExample{.op = "aten::_cudnn_attention_backward",
              .call = "bf16[2,4,3,6] bf16[2,4,3,8] bf16[2,2,5,8] bf16[2,2,5,6] bf16[2,4,3,6] "
                      "[2,4,3] - - - - - 3 5 - "
                      "1 -",
              .executed = 3456,
              .model = 2688,
              .bytes = 2464,
              .pairs = exact},
    causal("flash_attn::_flash_attn_forward",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - 1 -1 -1 - - 0"),
    causal_backward("flash_attn::_flash_attn_backward",
                    "bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] bf16[2,3,4,6] [2,4,3] "
                    "- - - - - 1 -1 -1 - - 0 -"),
    packed("flash_attn::_flash_attn_varlen_forward",
           "bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] [3] [3] 5 5 - - 1 -1 -1 - - 0 - - - 0"),
    packed_backward("flash_attn::_flash_attn_varlen_backward",
                    "bf16[7,4,6] bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] bf16[7,4,6] [4,7] - - - [3] "
                    "[3] 5 5 - - 1 -1 -1 - - 0 -"),
    causal("flash_attn_3::fwd",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - - - - - - - - - - - - - - - - 1 "
           "-1 -1 0"),
    causal_backward("flash_attn_3::bwd",
                    "bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] bf16[2,3,4,6] [2,4,3] "
                    "- - - - - - - - - - 1 -1 -1 - 0 0"),
    causal("xformers_flash::flash_fwd",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - 3 5 - - 1 -1 -1 0 - 0"),
    causal_backward("xformers_flash::flash_bwd",
                    "0 bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] bf16[2,3,4,6] "
                    "[2,4,3] - - 3 5 - - 1 -1 -1 - 0"),
};

}  // namespace

extern constinit const OpFamily op_flash_attention{
    .name = "flash_attention",
    .help = "attention kernels with packed sequences and windows; supported as attention",
    .source =
        "FlashAttention-2, arXiv 2307.08691; arguments as in the schemas of torch 2.13 and of the "
        "flash-attn 2 and 3 and xFormers packages",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
