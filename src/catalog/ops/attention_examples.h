// SPDX-License-Identifier: Apache-2.0
//
// Common parts of the worked examples of attention.
#pragma once

#include <flopmeter/catalog/op_rule.h>

namespace flopmeter {

// Two sequences, three queries, five keys, four query heads on two key heads, d_qk = 8, d_v = 6.
//
// Pairs: all 2 * 15 = 30; from the first key, or with a window of one key back, 2 * (1 + 2 + 3) =
// 2 * 3 * 2 = 12; causal, up to the last key, 2 * (3 + 4 + 5) = 24.  A pair costs 4 * 2 * (8 + 6) =
// 112 forward; backward twice that for the model, and as executed 4 * 2 * (3 * 8 + 2 * 6) = 288.
// Bytes: (6 * 4 + 10 * 2) * (8 + 6) elements of 2; backward twice that.
//
// Packed: seven tokens in two sequences, the longest five, causal: at most 2 * 15 = 30 pairs; (7 *
// 4 + 7 * 2) * 14 elements.
constexpr OpExample from_first(std::string_view op, std::string_view call) {
  return op_example(op, call, 1344, 1232, AttentionPairs::exact);
}
constexpr OpExample from_first_backward(std::string_view op, std::string_view call) {
  return {.op = op,
          .call = call,
          .executed = 3456,
          .model = 2688,
          .bytes = 2464,
          .pairs = AttentionPairs::exact};
}
constexpr OpExample causal(std::string_view op, std::string_view call) {
  return op_example(op, call, 2688, 1232, AttentionPairs::exact);
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
  return op_example(op, call, 3360, 1176, AttentionPairs::unknown);
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
