// SPDX-License-Identifier: Apache-2.0
//
// Location of the Python package, and whether a command starts a Python that ignores its hook.
#pragma once

#include <flopmeter/core/result.h>

#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

/// The folder of the package `flopmeter` that belongs to this program: its parent (wheel), its
/// sibling (build), or under its prefix (installation).
Result<std::string> python_package();

/// The part of the command that makes Python ignore its environment or start without `site`
/// ("python -I"), in the command itself or in the first line of the script that it names.
std::optional<std::string> isolated_python(const std::vector<std::string>& command);

}  // namespace flopmeter
