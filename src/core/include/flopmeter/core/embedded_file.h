// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace flopmeter {

/// A data file that the build compiled in.
struct EmbeddedFile {
  std::string_view name;  ///< the file's name without its extension
  std::string_view text;
};

}  // namespace flopmeter
