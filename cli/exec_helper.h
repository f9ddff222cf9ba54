// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command.h"

#include <string>
#include <vector>

namespace flopmeter {

/// Becomes the program `name` in the same folder, which links libtorch.  Returns only if it is
/// missing.
Exit exec_helper(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace flopmeter
