// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace flopmeter {

/// Starts or ends counting what this thread allocates, and returns the count so far.
std::size_t count_allocations(bool on);

}  // namespace flopmeter
