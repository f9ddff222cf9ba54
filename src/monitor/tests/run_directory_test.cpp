// SPDX-License-Identifier: Apache-2.0
//
// Content of a run directory after a run.
#include "reliability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(RunDirectory, old_starts_are_deleted_but_never_a_live_one) {
  TemporaryDirectory directory;
  for (int i = 0; i < 6; ++i) {
    const std::string stamp = "2020010" + std::to_string(i + 1) + "_000000";
    for (const std::string& name : {"perf_metrics_" + stamp + ".log",
                                    "perf_summary_" + stamp + ".json",
                                    "records_" + stamp + ".rank0.jsonl"}) {
      std::ofstream{directory.path() + "/" + name} << "x";
    }
  }
  std::ofstream{directory.path() + "/perf_metrics_notes.log"} << "mine";
  Options options = without_console(directory);
  options.max_log_files = 3;
  auto live = Monitor::start(options);
  six_phases(*live);
  while (live->status().written == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(directory.names("records_").size(), 3U);
  EXPECT_EQ(directory.names("perf_metrics_2020").size(), 2U);
  options.max_log_files = 1;
  {
    auto other = Monitor::start(options);
    six_phases(*other);
  }
  live->finish();
  EXPECT_EQ(directory.names("records_").size(), 2U);  // the live one was spared
  EXPECT_EQ(directory.names("perf_metrics_notes").size(), 1U);
}

TEST(RunDirectory, two_runs_in_one_directory_never_share_a_line) {
  TemporaryDirectory directory;
  {
    auto one = Monitor::start(without_console(directory));
    auto two = Monitor::start(without_console(directory));
    std::thread first{[&] {
      for (int i = 0; i < 200; ++i) six_phases(*one);
    }};
    for (int i = 0; i < 200; ++i) six_phases(*two);
    first.join();
  }
  EXPECT_EQ(directory.names("records_").size(), 2U);
  EXPECT_EQ(read_records(directory, 0).size(), 200U);
  EXPECT_EQ(read_records(directory, 1).size(), 200U);
  EXPECT_EQ(directory.names("perf_summary_").size(), 2U);
}

TEST(RunDirectory, nothing_of_the_environment_or_command_line_is_recorded) {
  setenv("FLOPMETER_TEST_SECRET", "hunter2-secret", 1);
  TemporaryDirectory directory;
  Options options = everything(directory);
  options.metrics_token = "hunter2-secret";
  {
    auto monitor = Monitor::start(options);
    for (int i = 0; i < 20; ++i) six_phases(*monitor);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (entry.is_regular_file()) {
      EXPECT_THAT(read_file(entry.path()), testing::Not(HasSubstr("hunter2"))) << entry.path();
    }
  }
}

}  // namespace
}  // namespace flopmeter
