// SPDX-License-Identifier: Apache-2.0
//
// Cost for the monitored process: no allocation, one thread, constant memory.
#include "allocation_probe.h"
#include "reliability.h"

#include <flopmeter/telemetry/process_memory.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(TrainingThread, a_step_allocates_nothing_on_its_thread) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(everything(directory));
  ASSERT_TRUE(monitor);
  count_allocations(true);
  for (int i = 0; i < 10'000; ++i) six_phases(*monitor);  // the ring is full for most of it
  EXPECT_EQ(count_allocations(false), 0U);
  count_allocations(true);
  operator delete(operator new(1));
  EXPECT_EQ(count_allocations(false), 1U);  // the probe itself works
  EXPECT_GT(monitor->status().dropped, 0U);
}

TEST(TrainingThread, there_is_one_named_thread_with_blocked_signals) {
  const auto threads = [] {
    std::vector<std::string> status;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (read_file(task.path() / "comm") == "flopmeter\n")
        status.push_back(read_file(task.path() / "status"));
    }
    return status;
  };
  const std::size_t before = threads().size();
  TemporaryDirectory directory;
  auto monitor = Monitor::start(without_console(directory));
  six_phases(*monitor);
  while (monitor->status().written == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(threads().size(), before + 1);
  EXPECT_THAT(threads().back(),
              HasSubstr("SigBlk:\tfffffffe7ffbfeff"));  // all but those that cannot be blocked
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0);
}

TEST(TrainingThread, memory_stays_flat) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers allocate memory";
#endif
  TemporaryDirectory directory;
  Options options = everything(directory);
  options.disk_limit_mib = 4;
  auto monitor = Monitor::start(options);
  const long steps = long_form() ? 10'000'000 : 300'000;
  const auto run = [&](long count) {
    for (long i = 0; i < count; ++i) {
      six_phases(*monitor);
      if (i % 1000 == 0) std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(100ms);
    return *read_process_memory().rss;
  };
  const std::int64_t before = run(steps / 3);
  const std::int64_t after = run(steps - steps / 3);
  EXPECT_LT(after - before, 1 << 20);
  monitor->finish();
  for (const auto& name : directory.names("records_")) {
    EXPECT_LE(std::filesystem::file_size(directory.path() + "/" + name), 4U << 20U) << name;
  }
}

}  // namespace
}  // namespace flopmeter
