// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command.h"

#include <string>
#include <vector>

namespace flopmeter {

/// Becomes the program `name` that lies beside this one and links what this one must not
/// (libtorch).  Returns only where it is not there.
Exit exec_helper(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace flopmeter
