// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/diagnosis.h>

#include <string_view>

namespace flopmeter {

/// The diagnosis's verdict on an MFU, or that it cannot be.
inline std::string_view verdict_word(double mfu) {
  return mfu > 1 ? "impossible" : verdict(mfu);
}

}  // namespace flopmeter
