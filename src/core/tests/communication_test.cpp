// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/communication.h>
#include <flopmeter/core/current_phase.h>

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace flopmeter {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t millisecond = 1'000'000;

/// Time that `work` waited and overlapped, in nanoseconds.
template <class Work>
std::pair<std::int64_t, std::int64_t> spent(Work work) {
  const CommunicationTotals before = communication_now();
  work();
  const CommunicationTotals after = communication_now();
  const auto sum = [](const CommunicationTotals& totals) {
    return std::accumulate(totals.waited_ns.begin(), totals.waited_ns.end(), std::int64_t{0});
  };
  return {sum(after) - sum(before), after.overlapped_ns - before.overlapped_ns};
}

TEST(Communication, without_operations_all_of_it_is_waiting) {
  current_phase().store(Phase::backward);
  const auto before = communication_now();
  const auto [waited, overlapped] = spent([] {
    collective_began();
    std::this_thread::sleep_for(20ms);
    collective_ended();
  });
  current_phase().store(Phase::other);
  EXPECT_GE(waited, 20 * millisecond);
  EXPECT_EQ(overlapped, 0);
  EXPECT_EQ(communication_now().collectives, before.collectives + 1);
  constexpr auto backward = static_cast<std::size_t>(Phase::backward);
  EXPECT_EQ(communication_now().waited_ns[backward] - before.waited_ns[backward], waited);
}

TEST(Communication, time_up_to_the_last_operation_is_overlapped) {
  const auto [waited, overlapped] = spent([] {
    collective_began();
    operation_began();
    std::this_thread::sleep_for(20ms);
    operation_ended();
    std::this_thread::sleep_for(10ms);
    collective_ended();
  });
  EXPECT_GE(overlapped, 20 * millisecond);
  EXPECT_GE(waited, 10 * millisecond);
}

TEST(Communication, a_collective_that_ends_during_an_operation_is_hidden) {
  const auto [waited, overlapped] = spent([] {
    collective_began();
    operation_began();
    std::this_thread::sleep_for(5ms);
    collective_ended();
    operation_ended();
  });
  EXPECT_EQ(waited, 0);
  EXPECT_GE(overlapped, 5 * millisecond);
}

TEST(Communication, collectives_at_the_same_time_count_once) {
  const auto start = std::chrono::steady_clock::now();
  const auto [waited, overlapped] = spent([] {
    for (int i = 0; i < 4; ++i) collective_began();
    std::this_thread::sleep_for(10ms);
    for (int i = 0; i < 4; ++i) collective_ended();
  });
  const auto elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, 10 * millisecond);
  EXPECT_LE(waited, std::chrono::nanoseconds{elapsed}.count());
  EXPECT_EQ(overlapped, 0);
  EXPECT_EQ(collectives_under_way.load(), 0);
}

}  // namespace
}  // namespace flopmeter
