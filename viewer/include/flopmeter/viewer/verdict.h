// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace flopmeter {

/// An MFU in a word: over 50 % is good, 10 to 20 % is low; more than 100 % cannot be.
constexpr std::string_view verdict(double mfu) {
  if (mfu > 1) return "impossible";
  if (mfu >= 0.5) return "good";
  if (mfu >= 0.2) return "fair";
  return mfu >= 0.1 ? "low" : "very low";
}

}  // namespace flopmeter
