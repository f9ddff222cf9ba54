// SPDX-License-Identifier: Apache-2.0
//
// Worked examples of attention with the length before the heads.
#pragma once

#include <flopmeter/catalog/op_rule.h>

namespace flopmeter {

// Sizes and costs of a pair as in attention.cpp: 112 forward, 224 for the model's backward, 288
// executed.
//
// Two sequences of three queries and five keys, causal: 2 * (3 + 4 + 5) = 24 pairs; with a window
// of one key back 2 * 3 * 2 = 12.  Seven tokens in two packed sequences, the longest five, causal:
// at most 2 * 15 = 30 pairs; (7 * 4 + 7 * 2) * 14 elements.
constexpr OpExample windowed_or_from_first(std::string_view op, std::string_view call) {
  return {.op = op,
          .call = call,
          .executed = 1344,
          .model = 1344,
          .bytes = 1232,
          .pairs = AttentionPairs::exact};
}
constexpr OpExample causal(std::string_view op, std::string_view call) {
  return {.op = op,
          .call = call,
          .executed = 2688,
          .model = 2688,
          .bytes = 1232,
          .pairs = AttentionPairs::exact};
}
constexpr OpExample causal_backward(std::string_view op, std::string_view call) {
  return {.op = op,
          .call = call,
          .executed = 6912,
          .model = 5376,
          .bytes = 2464,
          .pairs = AttentionPairs::exact};
}
constexpr OpExample packed(std::string_view op, std::string_view call) {
  return {.op = op,
          .call = call,
          .executed = 3360,
          .model = 3360,
          .bytes = 1176,
          .pairs = AttentionPairs::unknown};
}
constexpr OpExample packed_backward(std::string_view op, std::string_view call) {
  return {.op = op,
          .call = call,
          .executed = 8640,
          .model = 6720,
          .bytes = 2352,
          .pairs = AttentionPairs::unknown};
}

}  // namespace flopmeter
