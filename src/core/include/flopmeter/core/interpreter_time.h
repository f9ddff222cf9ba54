// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace flopmeter {

/// Nanoseconds that Python's garbage collector ran, since the monitor last took them.  The Python
/// package adds, the monitor takes.
std::atomic<std::int64_t>& garbage_collection_ns();

/// The address that threads wait at for Python's interpreter lock; 0: unknown.  The Python package
/// finds it, the monitor compares with it.
std::atomic<std::uintptr_t>& interpreter_lock_futex();

}  // namespace flopmeter
