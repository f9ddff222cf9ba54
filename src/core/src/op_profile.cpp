// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/op_profile.h>

#include <array>

namespace flopmeter {
namespace {

constexpr std::array<std::string_view, op_kind_count> kinds = {
    "compute", "memory", "tiny", "unknown", "communication"};

}  // namespace

std::string_view to_string(OpKind kind) {
  return kinds[static_cast<std::size_t>(kind)];
}

std::optional<OpKind> parse_op_kind(std::string_view text) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == text) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

}  // namespace flopmeter
