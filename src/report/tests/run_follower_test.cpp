// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/report/frame.h>
#include <flopmeter/report/run_follower.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace flopmeter {
namespace {

/// A directory with one step of `ranks` ranks, followed.
class Follower : public testing::Test {
 protected:
  void write(std::int64_t step, int rank = 0, const std::string& stamp = "20231114_221320") {
    append_file(stream_of(directory_, rank, stamp), line_of(sample_step(step, rank)));
  }
  bool refresh() {
    auto news = follower_.refresh();
    EXPECT_TRUE(news.has_value());
    return news && *news;
  }

  TemporaryDirectory directory_;
  RunFollower follower_{directory_.path()};
};

TEST_F(Follower, reads_each_record_once) {
  write(1);
  EXPECT_TRUE(refresh());
  EXPECT_FALSE(refresh());
  for (std::int64_t step = 2; step <= 5; ++step) write(step);
  EXPECT_TRUE(refresh());
  ASSERT_EQ(follower_.window().size(), 5U);
  EXPECT_EQ(follower_.totals().ranks.at(0).totals().last_step, 5);
  EXPECT_EQ(follower_.totals().timeline.buckets().at(3).spreads[0].count, 1);
}

TEST_F(Follower, a_line_without_its_end_waits_for_it) {
  write(1);
  refresh();
  const std::string line = line_of(sample_step(2));
  append_file(stream_of(directory_, 0), line.substr(0, 100));
  refresh();
  EXPECT_EQ(follower_.window().size(), 1U);
  append_file(stream_of(directory_, 0), line.substr(100));
  refresh();
  ASSERT_EQ(follower_.window().size(), 2U);
  EXPECT_EQ(follower_.window().back().step, 2);
}

TEST_F(Follower, sees_new_ranks_and_restarts) {
  write(1);
  refresh();
  write(1, 7);
  EXPECT_TRUE(refresh());
  EXPECT_EQ(follower_.totals().ranks.size(), 2U);
  write(2, 0, "20231114_230000");
  EXPECT_TRUE(refresh());
  EXPECT_EQ(follower_.totals().ranks.at(0).totals().last_step, 2);
}

TEST_F(Follower, starts_with_the_end_of_a_long_stream) {
  std::string text;
  while (text.size() < (9U << 20U)) {
    for (std::int64_t step = 0; step < 1000; ++step) text += line_of(sample_step(step));
  }
  append_file(stream_of(directory_, 0), text);
  refresh();
  EXPECT_EQ(follower_.totals().ranks.at(0).totals().last_step, 999);
  std::int64_t records = 0;
  for (const auto& [index, bucket] : follower_.totals().timeline.buckets())
    records += bucket.spreads[0].count;
  EXPECT_GT(records, 500);
  EXPECT_LT(records * static_cast<std::int64_t>(line_of(sample_step(1)).size()), 5 << 20);
}

TEST_F(Follower, damaged_lines_are_passed_over) {
  write(1);
  append_file(stream_of(directory_, 0), "not a record\n{\"v\":2}\n");
  write(2);
  refresh();
  EXPECT_EQ(follower_.window().size(), 2U);
}

TEST_F(Follower, a_stream_written_again_is_read_again) {
  for (std::int64_t step = 1; step <= 9; ++step) write(step);
  refresh();
  std::filesystem::remove(stream_of(directory_, 0));
  write(1);
  refresh();
  EXPECT_EQ(follower_.totals().ranks.at(0).totals().last_step, 1);
}

TEST_F(Follower, ten_thousand_ranks_of_which_a_hundred_grow_take_less_than_a_second) {
  constexpr int ranks = 10'000;
  for (int rank = 0; rank < ranks; ++rank) {
    std::string text;
    for (std::int64_t step = 1; step <= 5; ++step) text += line_of(sample_step(step, rank));
    append_file(stream_of(directory_, rank), text);
  }
  refresh();
  ASSERT_EQ(follower_.totals().ranks.size(), static_cast<std::size_t>(ranks));
  double fastest = 1e9;  // of three: other work on the machine is not what is measured
  for (std::int64_t step = 6; step <= 8; ++step) {
    for (int rank = 0; rank < ranks; rank += 100) write(step, rank);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(refresh());
    const std::vector<Finding> none;
    const auto lines =
        draw_frame({follower_.run().metadata, follower_.totals(), none}, {120, 40}, true);
    fastest = std::min(
        fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    EXPECT_GT(lines.size(), 5U);
    EXPECT_EQ(follower_.totals().ranks.at(9900).totals().last_step, step);
  }
  RecordProperty("refresh_seconds", std::to_string(fastest));
  std::printf("refresh and frame: %.0f ms\n", 1e3 * fastest);
  EXPECT_LT(fastest, 1.0);
}

TEST(RunFollower, a_path_that_is_not_a_run_directory_is_an_error) {
  RunFollower follower{"/nowhere/at/all"};
  EXPECT_FALSE(follower.refresh());
}

}  // namespace
}  // namespace flopmeter
