// SPDX-License-Identifier: Apache-2.0
//
// Clocks, read through the vDSO: no system call on the reader's thread.
#pragma once

#include <cstdint>

namespace flopmeter {

/// Nanoseconds of a clock that never jumps; only differences mean anything.
std::int64_t monotonic_nanoseconds() noexcept;

/// Nanoseconds since 1970 as the wall clock has it; may jump.
std::int64_t unix_nanoseconds() noexcept;

/// Processor time of the calling thread, in nanoseconds (a system call).
std::int64_t thread_cpu_nanoseconds() noexcept;

/// Two clocks as a value, so that tests may turn the hands themselves.
struct Clock {
  std::int64_t (*monotonic)() noexcept = monotonic_nanoseconds;
  std::int64_t (*unix_time)() noexcept = unix_nanoseconds;
};

}  // namespace flopmeter
