// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace flopmeter {

/// Nanoseconds that Python's garbage collector ran, since the monitor last took them.  The Python
/// package adds, the monitor takes.
std::atomic<std::int64_t>& garbage_collection_ns();

}  // namespace flopmeter
