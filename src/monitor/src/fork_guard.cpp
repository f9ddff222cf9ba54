// SPDX-License-Identifier: Apache-2.0
#include "fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace flopmeter {
namespace {

constinit std::atomic<std::uint64_t> generation{0};
constinit std::atomic<bool> watching{false};

}  // namespace

std::uint64_t fork_generation() noexcept {
  return generation.load(std::memory_order_relaxed);
}

void watch_forks() {
  if (watching.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace flopmeter
