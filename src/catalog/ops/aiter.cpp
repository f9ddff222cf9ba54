// SPDX-License-Identifier: Apache-2.0
//
// Attention of AITER (ROCm).  Its operators are defined when they are first called; arguments are
// found by their names.
#include "attention_cost.h"
#include "attention_examples.h"

namespace flopmeter {
namespace {

constexpr AttentionPlaces forward = named_attention;
constexpr AttentionPlaces backward = backward_of(named_attention);

constexpr std::array rules = {
    library_attention_rule<forward>("aiter::mha_fwd"),
    library_attention_rule<forward>("aiter::fmha_v3_fwd"),
    library_attention_rule<forward>("aiter::mha_varlen_fwd"),
    library_attention_rule<forward>("aiter::fmha_v3_varlen_fwd"),
    library_attention_rule<backward>("aiter::mha_bwd"),
    library_attention_rule<backward>("aiter::fmha_v3_bwd"),
    library_attention_rule<backward>("aiter::mha_varlen_bwd"),
    library_attention_rule<backward>("aiter::fmha_v3_varlen_bwd"),
};

// query, key, value, starts, longest, used, pages, chunk, causal, window
constexpr std::string_view even = "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - - 1 -1 -1";
constexpr std::string_view uneven = "bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] [3] [3] 5 5 - - - 1 -1 -1";

constexpr std::array examples = {
    causal("aiter::mha_fwd", even),
    causal("aiter::fmha_v3_fwd", even),
    packed("aiter::mha_varlen_fwd", uneven),
    packed("aiter::fmha_v3_varlen_fwd", uneven),
    causal_backward("aiter::mha_bwd", even),
    causal_backward("aiter::fmha_v3_bwd", even),
    packed_backward("aiter::mha_varlen_bwd", uneven),
    packed_backward("aiter::fmha_v3_varlen_bwd", uneven),
};

}  // namespace

extern constinit const OpFamily op_aiter{.name = "aiter",
                                         .help = "attention of AITER; supported as attention",
                                         .source = "parameter names of aiter/ops/mha.py",
                                         .rules = rules,
                                         .examples = examples};

}  // namespace flopmeter
