// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/host_load.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace flopmeter {
namespace {

constexpr std::int64_t second = 1'000'000'000;

class HostLoadTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/host_load_" + std::to_string(getpid());
    std::filesystem::create_directories(root_ + "/proc/self/task/7");
    std::filesystem::create_directories(root_ + "/sys/fs/cgroup/job");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    std::ofstream{root_ + path} << text;
  }

  std::string root_;
};

TEST_F(HostLoadTest, reports_the_time_since_the_last_call) {
  put("/proc/self/task/7/schedstat", "1000 5000000000 3\n");
  put("/proc/self/cgroup", "0::/job\n");
  put("/sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1000000\n");
  put("/proc/stat", "cpu  1 2 3 4 5 6 7 800 0 0\n");
  HostLoad load{7, root_};
  put("/proc/self/task/7/schedstat", "2000 5250000000 3\n");
  put("/sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1100000\n");
  put("/proc/stat", "cpu  1 2 3 4 5 6 7 900 0 0\n");
  const HostWait wait = load.since_last(second);
  EXPECT_NEAR(wait.run_queue->value, 0.25, 1e-9);
  EXPECT_NEAR(wait.throttled->value, 0.1, 1e-9);
  EXPECT_GT(wait.stolen->value, 0);
  EXPECT_EQ(load.since_last(2 * second).run_queue->value, 0);
}

TEST_F(HostLoadTest, reads_the_first_version_of_cgroups) {
  put("/proc/self/cgroup", "5:cpuacct,cpu:/job\n1:name=systemd:/\n");
  std::filesystem::create_directories(root_ + "/sys/fs/cgroup/cpu/job");
  put("/sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 1\nthrottled_time 1000000000\n");
  HostLoad load{7, root_};
  put("/sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 1\nthrottled_time 1500000000\n");
  EXPECT_NEAR(load.since_last(second).throttled->value, 0.5, 1e-9);
}

TEST_F(HostLoadTest, is_empty_if_the_kernel_reports_nothing) {
  HostLoad load{7, root_};
  const HostWait wait = load.since_last(second);
  EXPECT_FALSE(wait.run_queue);
  EXPECT_FALSE(wait.throttled);
  EXPECT_FALSE(wait.stolen);
}

TEST(HostLoad, reads_this_machine) {
  HostLoad load{gettid()};
  EXPECT_TRUE(load.since_last(second).run_queue);
}

}  // namespace
}  // namespace flopmeter
