// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/interpreter_time.h>

namespace flopmeter {
namespace {

constinit std::atomic<std::int64_t> collecting_ns{0};
constinit std::atomic<std::uintptr_t> lock_futex{0};

}  // namespace

std::atomic<std::int64_t>& garbage_collection_ns() {
  return collecting_ns;
}

std::atomic<std::uintptr_t>& interpreter_lock_futex() {
  return lock_futex;
}

}  // namespace flopmeter
