// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/clock.h>

#include <ctime>

namespace flopmeter {
namespace {

std::int64_t read(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::int64_t monotonic_nanoseconds() noexcept {
  return read(CLOCK_MONOTONIC);
}
std::int64_t unix_nanoseconds() noexcept {
  return read(CLOCK_REALTIME);
}
std::int64_t thread_cpu_nanoseconds() noexcept {
  return read(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace flopmeter
