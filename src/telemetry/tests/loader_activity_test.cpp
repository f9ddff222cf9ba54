// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/loader_activity.h>

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace flopmeter {
namespace {

/// Samples from another thread, as the monitor does, while this thread waits.
int busy_samples(int samples) {
  const pid_t waiting = gettid();
  int busy = 0;
  std::thread looker{[&] {
    for (int i = 0; i < samples; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      if (thread_or_children_run(waiting).value_or(false)) ++busy;
    }
  }};
  looker.join();
  return busy;
}

TEST(LoaderActivity, a_waiting_thread_without_workers_is_not_active) {
  EXPECT_LE(busy_samples(20), 2);
}

TEST(LoaderActivity, a_computing_worker_counts_for_the_thread_that_started_it) {
  const pid_t worker = fork();
  if (worker == 0) {
    for (std::atomic<unsigned> spin = 0;; ++spin) {
    }
  }
  const int busy = busy_samples(20);
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  EXPECT_GE(busy, 18);
}

TEST(LoaderActivity, a_waiting_worker_is_not_active) {
  const pid_t worker = fork();
  if (worker == 0) {
    while (true) pause();
  }
  const int busy = busy_samples(20);
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  EXPECT_LE(busy, 2);
}

TEST(LoaderActivity, the_futex_of_a_thread_is_the_one_it_waits_for) {
  std::atomic<std::uint32_t> word{0};
  std::atomic<pid_t> thread{0};
  std::thread waiter{[&] {
    thread = gettid();
    while (word == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }};
  std::uintptr_t found = 0;
  for (int i = 0; i < 1000 && found == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    found = futex_of(thread).value_or(0);
  }
  EXPECT_EQ(futex_of(gettid()).value_or(0), 0U);
  word = 1;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  waiter.join();
  EXPECT_EQ(found, reinterpret_cast<std::uintptr_t>(&word));
}

TEST(LoaderActivity, is_empty_if_the_kernel_does_not_expose_it) {
  EXPECT_FALSE(thread_or_children_run(1, "/nowhere"));
  EXPECT_FALSE(futex_of(1, "/nowhere"));
}

}  // namespace
}  // namespace flopmeter
