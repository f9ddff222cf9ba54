// SPDX-License-Identifier: Apache-2.0
//
// A fork may happen at any time: the child is not monitored, and exits.
#include "reliability.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace flopmeter {
namespace {

TEST(Fork, forked_children_do_nothing_and_end) {
  TemporaryDirectory directory;
  auto monitor = Monitor::start(everything(directory));
  ASSERT_TRUE(monitor);
  std::atomic<bool> stop{false};
  std::thread busy{[&] {
    while (!stop) six_phases(*monitor);
  }};
  const int forks = long_form() ? 500 : 60;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(5);
      for (int k = 0; k < 10; ++k) monitor->begin_step({.step = -999});
      monitor->end_step();
      monitor->finish();
      const bool off = !monitor->enabled() && !monitor->status().disabled.empty();
      {
        Monitor gone = *std::move(monitor);
      }  // its destructor must not wait for a thread that is not here
      _exit(off ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  monitor->finish();
  EXPECT_FALSE(read_records(directory).empty());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (entry.is_regular_file()) {
      EXPECT_EQ(read_file(entry.path()).find("-999"), std::string::npos) << entry.path();
    }
  }
}

TEST(Fork, a_forked_child_may_start_its_own_monitor) {
  if (!children_may_start_threads) GTEST_SKIP() << "not under a sanitizer";
  TemporaryDirectory directory;
  TemporaryDirectory own;
  auto monitor = Monitor::start(without_console(directory));
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    auto mine = Monitor::start(without_console(own));
    for (int i = 0; i < 5; ++i) six_phases(*mine);
    mine->finish();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_records(own).size(), 5U);
}

}  // namespace
}  // namespace flopmeter
