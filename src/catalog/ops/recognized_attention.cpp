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

/// Other parameters that reduce the pairs make them a bound if they are passed.
int recognized_place(std::string_view parameter) {
  if (const int place = attention_place<forward>(parameter); place >= 0) return place;
  const auto is_named = [&](std::string_view part) {
    return parameter.find(part) != std::string_view::npos;
  };
  if (is_named("mask") || is_named("indices") || is_named("kernel_size"))
    return forward.mask_program;
  return is_named("seqlen") ? forward.used : -1;
}

template <AttentionPlaces at>
constexpr OpRule recognized(std::string_view name) {
  OpRule rule = attention_rule<at>(name);
  rule.place_of = recognized_place;
  return rule;
}

constexpr std::array rules = {
    recognized<forward>("any::attention_forward"),
    recognized<backward>("any::attention_backward"),
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
    .help =
        "operators of any library with parameters named query, key, value, and causal, and with "
        "flash-attn's parameters for lengths or windows",
    .source = "parameter names that flash-attn and its forks share",
    .rules = rules,
    .examples = examples};

}  // namespace flopmeter
