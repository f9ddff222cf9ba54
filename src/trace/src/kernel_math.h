// SPDX-License-Identifier: Apache-2.0
//
// The dtype that a kernel computes in, as its name states it.
#pragma once

#include <flopmeter/core/dtype.h>

#include <optional>
#include <string_view>

namespace flopmeter {

/// Empty if the name does not state it.
std::optional<Dtype> math_of_kernel(std::string_view name);

}  // namespace flopmeter
