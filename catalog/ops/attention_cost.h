// SPDX-License-Identifier: Apache-2.0
//
// What the attention families share: from the mask that a call tells to its cost.
#pragma once

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

namespace flopmeter {

enum class AttentionPass : std::uint8_t { forward, backward };

/// The forward pass executes what the model needs.  The gradients of queries, keys and values are
/// four products; fused kernels compute the scores once more, and read and write twice what the
/// forward pass does.
constexpr OpCost attention_cost(const Attention& op,
                                AttentionPass pass,
                                const Arg& query,
                                AttentionPairs pairs) {
  const Bytes forward_bytes = bytes_moved(op, query.dtype);
  if (pass == AttentionPass::forward) {
    return {.executed = flops(op), .model = flops(op), .bytes = forward_bytes, .pairs = pairs};
  }
  return {.executed = flash_backward_flops(op),
          .model = model_backward_flops(op),
          .bytes = 2 * forward_bytes,
          .pairs = pairs};
}

}  // namespace flopmeter
