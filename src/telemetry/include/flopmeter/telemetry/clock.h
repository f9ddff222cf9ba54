// SPDX-License-Identifier: Apache-2.0
//
// Clocks, read through the vDSO without a system call.
#pragma once

#include <cstdint>

namespace flopmeter {

/// Nanoseconds of a monotonic clock with an arbitrary origin.
std::int64_t monotonic_nanoseconds() noexcept;

/// Nanoseconds since 1970 of the wall clock, which may jump.
std::int64_t unix_nanoseconds() noexcept;

/// CPU time of the calling thread in nanoseconds (a system call).
std::int64_t thread_cpu_nanoseconds() noexcept;

/// Both clocks as a value, so that tests can set the time.
struct Clock {
  std::int64_t (*monotonic)() noexcept = monotonic_nanoseconds;
  std::int64_t (*unix_time)() noexcept = unix_nanoseconds;
};

}  // namespace flopmeter
