// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/loader_activity.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace flopmeter {
namespace {

/// Looks from another thread, as the monitor's does, while this one waits.
int busy_looks(int looks) {
  const pid_t waiting = gettid();
  int busy = 0;
  std::thread looker{[&] {
    for (int i = 0; i < looks; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      if (thread_or_children_run(waiting).value_or(false)) ++busy;
    }
  }};
  looker.join();
  return busy;
}

TEST(LoaderActivity, a_thread_that_waits_without_workers_does_not_run) {
  EXPECT_LE(busy_looks(20), 2);
}

TEST(LoaderActivity, a_worker_that_computes_counts_for_the_thread_that_started_it) {
  const pid_t worker = fork();
  if (worker == 0) {
    for (std::atomic<unsigned> spin = 0;; ++spin) {
    }
  }
  const int busy = busy_looks(20);
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  EXPECT_GE(busy, 18);
}

TEST(LoaderActivity, a_worker_that_waits_does_not_count) {
  const pid_t worker = fork();
  if (worker == 0) {
    while (true) pause();
  }
  const int busy = busy_looks(20);
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  EXPECT_LE(busy, 2);
}

TEST(LoaderActivity, is_empty_where_the_kernel_does_not_tell) {
  EXPECT_FALSE(thread_or_children_run(1, "/nowhere"));
}

}  // namespace
}  // namespace flopmeter
