// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/communication.h>
#include <flopmeter/core/current_phase.h>

#include <algorithm>
#include <chrono>
#include <mutex>

namespace flopmeter {

constinit std::atomic<std::int32_t> collectives_under_way{0};

namespace {

using Sum = std::atomic<std::int64_t>;

constinit std::mutex mutex;        // between threads that start and complete collectives
constinit std::int64_t since = 0;  ///< time before it is accounted for
constinit Sum last_operation{0};   ///< end of the last one
constinit std::atomic<std::int32_t> operations{0};
constinit std::array<Sum, phase_count> waited{};
constinit Sum overlapped{0};
constinit Sum completed{0};

std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void add(Sum& sum, std::int64_t amount) noexcept {
  sum.store(sum.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

/// Divides the time since the last account; under the lock.
void account() noexcept {
  const std::int64_t end = now();
  const std::int64_t busy =
      operations.load(std::memory_order_relaxed) > 0
          ? end
          : std::clamp(last_operation.load(std::memory_order_relaxed), since, end);
  add(overlapped, busy - since);
  add(waited[static_cast<std::size_t>(current_phase().load(std::memory_order_relaxed))],
      end - busy);
  since = end;
}

}  // namespace

CommunicationTotals communication_now() noexcept {
  CommunicationTotals totals;
  for (std::size_t i = 0; i < phase_count; ++i)
    totals.waited_ns[i] = waited[i].load(std::memory_order_relaxed);
  totals.overlapped_ns = overlapped.load(std::memory_order_relaxed);
  totals.collectives = completed.load(std::memory_order_relaxed);
  return totals;
}

void collective_began() noexcept {
  const std::lock_guard lock{mutex};
  if (collectives_under_way.load(std::memory_order_relaxed) == 0) {
    since = now();
  } else {
    account();
  }
  collectives_under_way.fetch_add(1, std::memory_order_relaxed);
}

void collective_ended() noexcept {
  const std::lock_guard lock{mutex};
  account();
  add(completed, 1);
  collectives_under_way.fetch_sub(1, std::memory_order_relaxed);
}

void settle_communication() noexcept {
  if (collectives_under_way.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock{mutex};
  if (collectives_under_way.load(std::memory_order_relaxed) > 0) account();
}

void operation_began() noexcept {
  operations.fetch_add(1, std::memory_order_relaxed);
}

void operation_ended() noexcept {
  last_operation.store(now(), std::memory_order_relaxed);
  operations.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace flopmeter
