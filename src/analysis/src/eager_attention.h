// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/rule.h>

#include <cstdint>
#include <optional>

namespace flopmeter {

/// Attention made of single operators, as a profile shows it.
struct EagerAttention {
  double softmax_calls = 0;      ///< in forward
  bool per_head = false;         ///< one head after the other
  std::int64_t nanoseconds = 0;  ///< of the window, beyond what its products and softmax need
  std::int64_t launching = 0;    ///< part of it that launching its operators takes
  double hidden_share = 0;  ///< of the FLOPs: scores that a causal mask hides, which a fused kernel
                            ///< is not credited with
};

/// Empty if attention is fused or absent, or if no profile shows it.
std::optional<EagerAttention> eager_attention(const RuleContext& context);

}  // namespace flopmeter
