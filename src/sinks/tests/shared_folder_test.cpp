// SPDX-License-Identifier: Apache-2.0
//
// Several programs in one folder: none loses a file to another.
#include "support.h"

#include <flopmeter/sinks/sinks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using testing::Not;

class SharedFolder : public testing::TestWithParam<const char*> {
 protected:
  /// The sink of a program that has written its first row.
  std::unique_ptr<Sink> start(std::int64_t step, const std::string& stamp = "20240129_103000") {
    RunContext run = sample_run(directory_.path());
    run.metadata.stamp = stamp;
    run.metadata.log_interval = 1;
    auto sink = make_sink(GetParam(), run);
    EXPECT_TRUE((*sink)->write(sample_step(step)));
    EXPECT_TRUE((*sink)->flush());
    return *std::move(sink);
  }
  [[nodiscard]] std::string file(const std::string& number = "") const {
    const bool summary = std::string_view{GetParam()} == "perf_summary";
    return directory_.path() + (summary ? "/perf_summary_20240129_103000" + number + ".json"
                                        : "/perf_realtime" + number + ".log");
  }

  TemporaryDirectory directory_;
};

TEST_P(SharedFolder, the_file_of_another_program_stays) {
  append_file(file(), "text of another program\n");
  start(7654);
  EXPECT_EQ(read_file(file()), "text of another program\n");
  EXPECT_THAT(read_file(file(".1")), HasSubstr("7654"));
}

TEST_P(SharedFolder, two_runs_at_the_same_time_have_their_own_files) {
  const auto first = start(1111);
  const auto second = start(2222);
  EXPECT_TRUE(first->write(sample_step(3333)));
  EXPECT_TRUE(first->finish({}));
  EXPECT_TRUE(second->finish({}));
  EXPECT_THAT(read_file(file()), HasSubstr("3333"));
  EXPECT_THAT(read_file(file()), Not(HasSubstr("2222")));
  EXPECT_THAT(read_file(file(".1")), HasSubstr("2222"));
}

INSTANTIATE_TEST_SUITE_P(Formats, SharedFolder, testing::Values("perf_realtime", "perf_summary"));

class PerfRealtime : public SharedFolder {};

TEST_P(PerfRealtime, a_start_replaces_the_file_of_an_earlier_one) {
  start(1111);
  start(2222, "20240130_080000");
  EXPECT_THAT(read_file(file()), HasSubstr("2222"));
  EXPECT_THAT(read_file(file()), Not(HasSubstr("1111")));
}
INSTANTIATE_TEST_SUITE_P(Formats, PerfRealtime, testing::Values("perf_realtime"));

}  // namespace
}  // namespace flopmeter
