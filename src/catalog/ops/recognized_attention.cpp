// SPDX-License-Identifier: Apache-2.0
//
// Attention of libraries that are not in the catalog, such as Hugging Face kernels, whose
// namespaces contain a hash.  recognize_op() finds it by the names of the parameters.
#include "attention_cost.h"
#include "attention_examples.h"

namespace flopmeter {
namespace {

constexpr AttentionPlaces forward = named_attention;
constexpr AttentionPlaces backward = backward_of(named_attention);

constexpr std::array rules = {
    library_attention_rule<forward>("any::attention_forward"),
    library_attention_rule<backward>("any::attention_backward"),
};

// query, key, value, starts, longest, used, pages, chunk, causal, window
constexpr std::array examples = {
    causal("any::attention_forward",
           "bf16[2,3,4,8] bf16[2,5,2,8] bf16[2,5,2,6] - - - - - - - 1 -1 -1"),
    packed_backward("any::attention_backward",
                    "bf16[7,4,8] bf16[7,2,8] bf16[7,2,6] [3] [3] 5 5 - - - 1 -1 -1"),
};

}  // namespace

extern constinit const OpFamily op_recognized_attention{
    .name = "recognized_attention",
    .help = "operators of any library with parameters named query, key, value, and causal",
    .source = "parameter names that flash-attn and its forks share",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
