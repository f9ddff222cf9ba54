// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace flopmeter {

/// A number that differs in every forked child.  The handler in the child only increments an
/// atomic: no lock, no message.
std::uint64_t fork_generation() noexcept;

/// Makes fork_generation() detect forks from now on.  Called at start, not from a background
/// thread.
void watch_forks();

}  // namespace flopmeter
