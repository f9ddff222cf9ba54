// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/step_record.h>

#include <array>

namespace flopmeter {

std::string_view to_string(FlopsProvenance source) {
  constexpr auto names = std::to_array<std::string_view>({"none",
                                                          "counted",
                                                          "calibrated",
                                                          "estimate",
                                                          "hardware",
                                                          "broadcast",
                                                          "user",
                                                          "framework",
                                                          "counted+catalog"});
  return names[static_cast<std::size_t>(source)];
}

std::string_view to_string(StepTag tag) {
  constexpr auto names = std::to_array<std::string_view>(
      {"train", "profile", "compile", "evaluation", "checkpoint", "generation"});
  return names[static_cast<std::size_t>(tag)];
}

std::string_view to_string(TimeSource source) {
  constexpr auto names = std::to_array<std::string_view>({"", "host", "device"});
  return names[static_cast<std::size_t>(source)];
}

}  // namespace flopmeter
