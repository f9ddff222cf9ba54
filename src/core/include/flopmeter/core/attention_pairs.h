// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flopmeter {

/// How much is known about the (query, key) pairs that attention used.
enum class AttentionPairs : std::uint8_t {
  none,     ///< no attention ran
  exact,    ///< every mask was known: causal flag, lengths, or no mask
  full,     ///< all pairs were counted because a mask tensor or plain matmuls hid the mask
  unknown,  ///< the lengths are on the device
};
inline constexpr std::size_t attention_pairs_count = 4;

constexpr std::string_view to_string(AttentionPairs pairs) {
  constexpr auto names = std::to_array<std::string_view>({"none", "exact", "full", "unknown"});
  return names[static_cast<std::size_t>(pairs)];
}

}  // namespace flopmeter
