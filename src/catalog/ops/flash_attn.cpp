// SPDX-License-Identifier: Apache-2.0
//
// The flash-attn packages.  Version 2.7 and later with torch 2.4 and later, and version 3, call
// dispatcher operators; older ones call functions of an extension module, whose arguments differ
// from release to release and are found by their number; version 4 calls Python functions.
#include "attention_cost.h"
#include "attention_examples.h"

namespace flopmeter {
namespace {

using At = AttentionPlaces;

/// A release whose function takes `arguments` arguments at these positions.
consteval CallLayout release(int arguments, At at) {
  const auto place = [](int position) { return static_cast<std::int8_t>(position); };
  const auto second = [](int first) {
    return static_cast<std::int8_t>(first < 0 ? -1 : first + 1);
  };
  return {.arguments = arguments,
          .places = {place(at.query),
                     place(at.query + 1),
                     place(at.query + 2),
                     place(at.starts),
                     second(at.starts),
                     place(at.longest),
                     second(at.longest),
                     place(at.used),
                     place(at.pages),
                     place(at.chunk),
                     place(at.causal),
                     place(at.window),
                     second(at.window),
                     -1,
                     place(at.value_query),
                     -1}};
}

constexpr std::array forward_2 = {
    release(9, {.causal = 6}),
    release(11, {.causal = 6, .window = 7}),
    release(12, {.causal = 7, .window = 8}),
    release(13, {.causal = 7, .window = 8}),
};
constexpr std::array packed_forward_2 = {
    release(14, {.starts = 4, .longest = 6, .causal = 11}),
    release(16, {.starts = 4, .longest = 6, .causal = 11, .window = 12}),
    release(17, {.starts = 4, .longest = 7, .used = 6, .causal = 12, .window = 13}),
    release(18, {.starts = 4, .longest = 8, .used = 6, .causal = 13, .window = 14}),
    release(19, {.starts = 4, .longest = 9, .used = 6, .pages = 7, .causal = 14, .window = 15}),
    release(20, {.starts = 4, .longest = 9, .used = 6, .pages = 7, .causal = 14, .window = 15}),
    release(21, {.starts = 4, .longest = 10, .used = 6, .pages = 8, .causal = 15, .window = 16}),
    release(22, {.starts = 4, .longest = 10, .used = 6, .pages = 8, .causal = 15, .window = 16}),
};
constexpr std::array backward_2 = {
    release(13, {.query = 1, .causal = 11}),
    release(14, {.query = 1, .causal = 11}),
    release(16, {.query = 1, .causal = 11, .window = 12}),
    release(17, {.query = 1, .causal = 12, .window = 13}),
    release(18, {.query = 1, .causal = 12, .window = 13}),
    release(19, {.query = 1, .causal = 12, .window = 13}),
};
constexpr std::array packed_backward_2 = {
    release(18, {.query = 1, .starts = 9, .longest = 11, .causal = 16}),
    release(19, {.query = 1, .starts = 9, .longest = 11, .causal = 16}),
    release(21, {.query = 1, .starts = 9, .longest = 11, .causal = 16, .window = 17}),
    release(22, {.query = 1, .starts = 9, .longest = 12, .causal = 17, .window = 18}),
    release(23, {.query = 1, .starts = 9, .longest = 12, .causal = 17, .window = 18}),
    release(24, {.query = 1, .starts = 9, .longest = 12, .causal = 17, .window = 18}),
};
constexpr At forward_3_at{.starts = 7,
                          .longest = 12,
                          .used = 11,
                          .pages = 14,
                          .causal = 24,
                          .window = 25,
                          .value_query = 5};
consteval At with(At at, int causal, int chunk) {
  at.causal = causal;
  at.window = causal + 1;
  at.chunk = chunk;
  return at;
}
/// A release whose number of arguments is also that of another.
consteval CallLayout ambiguous_release(int arguments, At at) {
  CallLayout layout = release(arguments, at);
  layout.boolean = at.causal;
  return layout;
}
constexpr std::array forward_3 = {
    ambiguous_release(
        31, {.starts = 6, .longest = 11, .used = 10, .pages = 13, .causal = 22, .window = 23}),
    ambiguous_release(31, with(forward_3_at, 23, -1)),
    release(32, with(forward_3_at, 23, -1)),
    release(33, with(forward_3_at, 24, -1)),
    release(34, with(forward_3_at, 24, 27)),
};
constexpr std::array backward_3 = {
    release(23, {.query = 1, .starts = 9, .longest = 13, .used = 12, .causal = 16, .window = 17}),
    release(22, {.query = 1, .starts = 9, .longest = 13, .used = 12, .causal = 16, .window = 17}),
};
// Version 3 before it had the functions above.
constexpr std::array hopper_forward = {
    release(6, {.causal = 5}),
    release(9, {.causal = 8}),
    release(11, {.causal = 8, .window = 9}),
    release(12, {.causal = 8, .window = 9}),
};
constexpr std::array hopper_packed_forward = {
    release(11, {.starts = 4, .longest = 7, .used = 6, .causal = 10}),
    release(12, {.starts = 4, .longest = 8, .used = 7, .causal = 11}),
    release(14, {.starts = 4, .longest = 8, .used = 7, .causal = 11, .window = 12}),
    release(15, {.starts = 4, .longest = 9, .used = 7, .pages = 8, .causal = 12, .window = 13}),
};
constexpr std::array hopper_backward = {
    release(11, {.query = 1, .causal = 10}),
    release(12, {.query = 1, .causal = 10}),
    release(14, {.query = 1, .causal = 10, .window = 11}),
};
constexpr std::array hopper_packed_backward = {
    release(16, {.query = 1, .starts = 9, .longest = 11, .causal = 14}),
    release(18, {.query = 1, .starts = 9, .longest = 13, .used = 12, .causal = 16}),
    release(20, {.query = 1, .starts = 9, .longest = 13, .used = 12, .causal = 16, .window = 17}),
};

/// A function whose arguments are found by their names or by `layouts`.
template <At at>
constexpr OpRule function(std::string_view name, std::span<const CallLayout> layouts = {}) {
  OpRule rule = library_attention_rule<at>(name);
  rule.python = true;
  rule.layouts = layouts;
  return rule;
}
constexpr At forward = named_attention;
constexpr At backward = backward_of(named_attention);

constexpr std::array rules = {
    library_attention_rule<At{.causal = 5, .window = 6, .bottom_right = true}>(
        "flash_attn::_flash_attn_forward"),
    library_attention_rule<At{
        .query = 1, .causal = 11, .window = 12, .bottom_right = true, .backward = true}>(
        "flash_attn::_flash_attn_backward"),
    library_attention_rule<At{.starts = 3,
                              .longest = 5,
                              .used = 17,
                              .pages = 15,
                              .causal = 9,
                              .window = 10,
                              .bottom_right = true}>("flash_attn::_flash_attn_varlen_forward"),
    library_attention_rule<At{.query = 1,
                              .starts = 9,
                              .longest = 11,
                              .causal = 15,
                              .window = 16,
                              .bottom_right = true,
                              .backward = true}>("flash_attn::_flash_attn_varlen_backward"),
    library_attention_rule<At{.starts = 7,
                              .longest = 12,
                              .used = 11,
                              .pages = 14,
                              .chunk = 27,
                              .causal = 24,
                              .window = 25,
                              .value_query = 5,
                              .bottom_right = true}>("flash_attn_3::fwd"),
    library_attention_rule<At{.query = 1,
                              .starts = 9,
                              .longest = 13,
                              .used = 12,
                              .causal = 16,
                              .window = 17,
                              .bottom_right = true,
                              .backward = true}>("flash_attn_3::bwd"),
    library_attention_rule<forward>("flash_attn_3::_flash_attn_forward"),
    library_attention_rule<backward>("flash_attn_3::_flash_attn_backward"),
    function<forward>("flash_attn_2_cuda::fwd", forward_2),
    function<forward>("flash_attn_2_cuda::varlen_fwd", packed_forward_2),
    function<backward>("flash_attn_2_cuda::bwd", backward_2),
    function<backward>("flash_attn_2_cuda::varlen_bwd", packed_backward_2),
    OpRule{.name = "flash_attn_2_cuda::fwd_kvcache", .flop_cost = unknown_cost, .python = true},
    function<forward>("flash_attn_3_cuda::fwd", forward_3),
    function<backward>("flash_attn_3_cuda::bwd", backward_3),
    function<forward>("flashattn_hopper_cuda::fwd", hopper_forward),
    function<forward>("flashattn_hopper_cuda::varlen_fwd", hopper_packed_forward),
    function<backward>("flashattn_hopper_cuda::bwd", hopper_backward),
    function<backward>("flashattn_hopper_cuda::varlen_bwd", hopper_packed_backward),
    OpRule{.name = "flashattn_hopper_cuda::fwd_kvcache", .flop_cost = unknown_cost, .python = true},
    function<forward>("flash_attn.cute.interface::_flash_attn_fwd"),
    function<backward>("flash_attn.cute.interface::_flash_attn_bwd"),
    OpRule{.name = "flash_attn.cute.interface::_flash_attn_bwd_sparse_mla",
           .flop_cost = unknown_cost,
           .python = true},
};

// Functions: query, key, value, starts of queries and keys, the longest of each, used keys, pages,
// chunk, causal, window to the left and right, and whether a program computes the mask.
constexpr std::string_view even =
    "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - - 1 -1 -1 -";
constexpr std::string_view uneven =
    "bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] [3] [3] 5 5 - - - 1 -1 -1 -";

constexpr std::array examples = {
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
    causal("flash_attn_3::_flash_attn_forward", even),
    causal_backward("flash_attn_3::_flash_attn_backward", even),
    causal("flash_attn_2_cuda::fwd", even),
    packed("flash_attn_2_cuda::varlen_fwd", uneven),
    causal_backward("flash_attn_2_cuda::bwd", even),
    packed_backward("flash_attn_2_cuda::varlen_bwd", uneven),
    causal("flash_attn_3_cuda::fwd", even),
    causal_backward("flash_attn_3_cuda::bwd", even),
    causal("flashattn_hopper_cuda::fwd", even),
    packed("flashattn_hopper_cuda::varlen_fwd", uneven),
    causal_backward("flashattn_hopper_cuda::bwd", even),
    packed_backward("flashattn_hopper_cuda::varlen_bwd", uneven),
    causal("flash_attn.cute.interface::_flash_attn_fwd", even),
    // all 2 * 15 pairs at most: a program computes the mask instead of the causal one
    op_example("flash_attn.cute.interface::_flash_attn_fwd",
               "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - - 1 - - 1",
               3360,
               1232,
               AttentionPairs::unknown),
    causal_backward("flash_attn.cute.interface::_flash_attn_bwd", even),
};

}  // namespace

extern constinit const OpFamily op_flash_attn{
    .name = "flash_attn",
    .help = "flash-attn 2, 3, and 4; supported as attention",
    .source = "FlashAttention-2, arXiv 2307.08691; arguments as in the sources of flash-attn",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
