// SPDX-License-Identifier: Apache-2.0
//
// Interposes the C library: system calls and allocations can be made to fail, and locks and late
// registrations of destructors are counted.
#pragma once

#include <cstddef>

namespace flopmeter {

/// How the chosen calls fail.
enum class Fault {
  once,       ///< the k-th call alone
  from_then,  ///< the k-th and all after it
  halved,     ///< the k-th call, if it is a write, takes half of its bytes
};

/// From now on the k-th call (1 is the next) fails with `code`.
void fail_call(long k, Fault fault, int code);
/// From now on the k-th allocation (1 is the next), by whichever thread, finds no memory.
void fail_allocation(long k, Fault fault);
/// Calls and allocations go through again; whether any was made to fail.
bool stop_failing();

/// Counts pthread locks taken by this thread; returns those counted so far.
std::size_t count_locks(bool on);
/// Counts destructors of static objects that other threads than this one register.
std::size_t watch_late_statics(bool on);

}  // namespace flopmeter
