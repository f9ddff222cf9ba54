// SPDX-License-Identifier: Apache-2.0
//
// Several programs in one folder: none loses a file to another.
#include "support.h"

#include <flopmeter/sinks/sinks.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// A daemon closes all descriptors; the next files of the program get their numbers.
TEST(ClosedDescriptors, records_never_reach_a_file_of_the_program) {
  TemporaryDirectory directory;
  auto sink =
      make_sink("jsonl:" + directory.path() + "/records.jsonl", sample_run(directory.path()));
  ASSERT_TRUE(sink);
  ASSERT_TRUE((*sink)->write(sample_step(1)));
  const int next = dup(STDOUT_FILENO);
  close(next);
  const int ours = next - 1;
  struct stat written {};
  struct stat opened {};
  ASSERT_EQ(stat((directory.path() + "/records.jsonl").c_str(), &written), 0);
  ASSERT_EQ(fstat(ours, &opened), 0);
  ASSERT_EQ(opened.st_ino, written.st_ino);
  close(ours);
  const std::string path = directory.path() + "/program.txt";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(file, ours);
  EXPECT_TRUE((*sink)->write(sample_step(2)));
  sink->reset();
  EXPECT_EQ(write(file, "text", 4), 4);  // still open
  close(file);
  EXPECT_EQ(read_file(path), "text");
  EXPECT_THAT(read_file(directory.path() + "/records.1.jsonl"), HasSubstr("\"step\":2"));
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
