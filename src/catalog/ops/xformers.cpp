// SPDX-License-Identifier: Apache-2.0
//
// Attention of xFormers and of MSLK, which has the same operators.
#include "attention_cost.h"
#include "attention_examples.h"

namespace flopmeter {
namespace {

using At = AttentionPlaces;

/// ROCm's composable kernels, and the CUTLASS kernels before release 0.0.29; the mask type is 0 for
/// none, 1 aligned at the first key, 2 at the last.  A window is not supported, as chunks are not.
constexpr At masked_forward{.query = 0,
                            .mask = 3,
                            .starts = 4,
                            .longest = 6,
                            .used = 9,
                            .pages = 11,
                            .chunk = 10,
                            .causal = 8};
constexpr int masked_place(std::string_view parameter) {
  return place_in_list(
      "query key value attn_bias|bias seqstart_q|cu_seqlens_q seqstart_k|cu_seqlens_k max_seqlen_q "
      "max_seqlen_k custom_mask_type seqlen_k window_size block_tables",
      parameter);
}
template <At at>
constexpr OpRule masked_attention(std::string_view name) {
  return {.name = name,
          .flop_cost = add_attention<at>,
          .place_of = masked_place,
          .packed = packed_attention<at>};
}
constexpr At masked_backward = backward_of(masked_forward);

constexpr At flash_forward{.starts = 3,
                           .longest = 6,
                           .used = 5,
                           .pages = 14,
                           .causal = 10,
                           .window = 11,
                           .bottom_right = true};
constexpr At flash_backward{.query = 2,
                            .starts = 7,
                            .longest = 9,
                            .causal = 13,
                            .window = 14,
                            .bottom_right = true,
                            .backward = true};

constexpr std::array rules = {
    library_attention_rule<flash_forward>("xformers_flash::flash_fwd"),
    library_attention_rule<flash_backward>("xformers_flash::flash_bwd"),
    library_attention_rule<flash_forward>("xformers_flash3::flash_fwd"),
    library_attention_rule<flash_backward>("xformers_flash3::flash_bwd"),
    library_attention_rule<flash_forward>("mslk_flash::flash_fwd"),
    library_attention_rule<flash_backward>("mslk_flash::flash_bwd"),
    library_attention_rule<flash_forward>("mslk_flash3::flash_fwd"),
    library_attention_rule<flash_backward>("mslk_flash3::flash_bwd"),
    masked_attention<masked_forward>("xformers::efficient_attention_forward_ck"),
    masked_attention<masked_backward>("xformers::efficient_attention_backward_ck"),
    masked_attention<masked_forward>("xformers::efficient_attention_forward_cutlass"),
    masked_attention<masked_backward>("xformers::efficient_attention_backward_cutlass"),
};

constexpr std::string_view forward_call =
    "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - 3 5 - - 1 -1 -1 0 - 0";
constexpr std::string_view backward_call =
    "0 bf16[2,3,4,6] bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] bf16[2,3,4,6] [2,4,3] - - 3 5 - - "
    "1 -1 -1 - 0";
constexpr std::array examples = {
    causal("xformers_flash::flash_fwd", forward_call),
    causal_backward("xformers_flash::flash_bwd", backward_call),
    causal("xformers_flash3::flash_fwd", forward_call),
    causal_backward("xformers_flash3::flash_bwd", backward_call),
    causal("mslk_flash::flash_fwd", forward_call),
    causal_backward("mslk_flash::flash_bwd", backward_call),
    causal("mslk_flash3::flash_fwd", forward_call),
    causal_backward("mslk_flash3::flash_bwd", backward_call),
    causal("xformers::efficient_attention_forward_ck",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - 2"),
    // Seven tokens in two sequences, queries at most five, keys of unknown length: 7 * 5 pairs.
    op_example("xformers::efficient_attention_forward_ck",
               "bf16[1,7,4,8] bf16[1,7,2,8] bf16[1,7,2,6] - [3] [3] 5 - 2",
               3920,
               1176,
               AttentionPairs::unknown),
    causal_backward("xformers::efficient_attention_backward_ck",
                    "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - 2"),
    from_first("xformers::efficient_attention_forward_cutlass",
               "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - 3 - 1"),
    from_first_backward("xformers::efficient_attention_backward_cutlass",
                        "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - 3 5 1"),
};

}  // namespace

extern constinit const OpFamily op_xformers{
    .name = "xformers",
    .help = "attention of xFormers and MSLK; supported as attention",
    .source = "FlashAttention-2, arXiv 2307.08691; schemas of xFormers 0.0.23 to 0.0.35",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
