// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flopmeter {

/// Activity of a training loop.  Every nanosecond of a step belongs to exactly one of these.
enum class Phase : std::uint8_t {
  data,
  forward,
  backward,
  optimizer,
  communication,
  checkpoint,
  evaluation,
  generation,
  other,
};
inline constexpr std::size_t phase_count = 9;

constexpr std::string_view to_string(Phase phase) {
  constexpr auto names = std::to_array<std::string_view>({"data",
                                                          "forward",
                                                          "backward",
                                                          "optimizer",
                                                          "communication",
                                                          "checkpoint",
                                                          "evaluation",
                                                          "generation",
                                                          "other"});
  return names[static_cast<std::size_t>(phase)];
}

}  // namespace flopmeter
