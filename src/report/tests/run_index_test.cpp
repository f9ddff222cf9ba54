// SPDX-License-Identifier: Apache-2.0
#include "../src/run_index.h"

#include "support.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

namespace flopmeter {
namespace {

void read_all(RunIndex& index, std::int64_t slice) {
  for (bool more = true; more;) {
    const auto read = index.advance(slice);
    ASSERT_TRUE(read.has_value());
    more = *read;
  }
}

class Index : public RunFiles {};

TEST_F(Index, slices_of_any_size_read_the_same_run) {
  for (int rank = 0; rank < 3; ++rank) write(1, 50, rank);
  for (const std::int64_t slice : {1, 700, 20'000, 1 << 30}) {
    RunIndex index{directory_.path()};
    read_all(index, slice);
    EXPECT_EQ(index.overview().all().steps, 50) << slice;
    EXPECT_EQ(index.overview().ranks.size(), 3U);
    EXPECT_EQ(index.damaged_lines(), 0);
  }
}

TEST_F(Index, takes_only_new_records_and_a_line_only_when_it_is_complete) {
  write(1, 10);
  RunIndex index{directory_.path()};
  read_all(index, 1 << 20);
  const std::int64_t version = index.version();
  read_all(index, 1 << 20);
  EXPECT_EQ(index.version(), version);
  const std::string line = line_of(sample_step(11));
  append_file(stream_of(directory_, 0), line.substr(0, 40));
  read_all(index, 1 << 20);
  EXPECT_EQ(index.overview().all().steps, 10);
  append_file(stream_of(directory_, 0), line.substr(40));
  read_all(index, 1 << 20);
  EXPECT_EQ(index.overview().all().steps, 11);
  EXPECT_GT(index.version(), version);
}

TEST_F(Index, a_stream_that_ends_in_zeros_is_not_read_to_its_end) {
  write(1, 10);
  constexpr std::int64_t most = 1 << 20;
  std::filesystem::resize_file(stream_of(directory_, 0), std::uintmax_t{100} << 30U);
  RunIndex index{directory_.path()};
  int calls = 1;
  while (*index.advance(most) && calls < 10) ++calls;
  EXPECT_LT(calls, 10);
  EXPECT_EQ(index.overview().all().steps, 10);
  EXPECT_EQ(index.damaged_lines(), 1);
  EXPECT_FALSE(*index.advance(most));
}

TEST_F(Index, steps_of_a_window_are_read_from_near_their_place) {
  for (int rank = 0; rank < 2; ++rank) write(1, 4000, rank);
  write(3001, 3100, 0, "20231115_000000");  // does steps of rank 0 again
  RunIndex index{directory_.path()};
  read_all(index, 1 << 16);
  std::map<std::int64_t, int> found;
  const auto add = [&](const StepRecord& record) { ++found[record.step]; };
  constexpr std::int64_t enough = std::int64_t{4} << 20;  // of about 10 MiB
  ASSERT_TRUE(index.read_steps(2990, 3010, enough, add));
  EXPECT_EQ(found.size(), 21U);
  EXPECT_EQ(found[2990], 2);
  EXPECT_EQ(found[3005], 2);
  found.clear();
  EXPECT_FALSE(index.read_steps(1, 4000, enough, add));
  EXPECT_TRUE(found.empty());
}

TEST_F(Index, reads_again_if_a_later_start_repeats_steps) {
  write(1, 20);
  RunIndex index{directory_.path()};
  read_all(index, 1 << 20);
  write(11, 15, 0, "20231115_000000");
  read_all(index, 1 << 20);
  EXPECT_EQ(index.overview().all().steps, 15);
  ASSERT_EQ(index.starts().size(), 2U);
  EXPECT_EQ(index.starts()[1].step, 11);
}

TEST_F(Index, reads_again_if_a_stream_is_replaced_by_a_shorter_one) {
  write(1, 20);
  RunIndex index{directory_.path()};
  read_all(index, 1 << 20);
  std::string text;
  for (std::int64_t step = 1; step <= 20; step += 2) text += line_of(sample_step(step));
  const std::string path = stream_of(directory_, 0);
  append_file(path + ".tmp", text);
  ASSERT_EQ(std::rename((path + ".tmp").c_str(), path.c_str()), 0);
  read_all(index, 1 << 20);
  EXPECT_EQ(index.overview().all().steps, 10);
}

TEST(RankMap, keeps_at_most_128_columns_and_the_mean_of_each) {
  RankMap map;
  for (const int rank : {1, 0}) {
    for (std::int64_t step = rank == 0 ? 0 : 500; step < 1000; ++step)
      map.add(sample_step(step, rank));
  }
  const RankMap::Picture picture = map.picture(0, 10, 128);
  EXPECT_EQ(picture.column_steps, 8);
  ASSERT_EQ(picture.first_ranks, (std::vector<int>{0, 1}));
  EXPECT_LE(picture.rows[0].size(), 128U);
  EXPECT_NEAR(picture.rows[0][1].value(), 0.4, 1e-6);
  EXPECT_FALSE(picture.rows[1][1].has_value());
  EXPECT_TRUE(picture.rows[1].back().has_value());
}

TEST(RankMap, a_row_of_several_ranks_shows_the_slowest) {
  RankMap map;
  for (int rank = 0; rank < 100; ++rank) map.add(sample_step(1, rank));
  const RankMap::Picture picture = map.picture(0, 1000, 10);
  ASSERT_EQ(picture.rows.size(), 10U);
  EXPECT_EQ(picture.ranks_per_row, 10);
  EXPECT_EQ(picture.slowest[0][0], 3);
  EXPECT_NEAR(picture.rows[0][0].value(), 0.5, 1e-6);
}

TEST(RankMap, far_apart_steps_take_bounded_memory) {
  RankMap map;
  for (const std::int64_t step : {std::int64_t{-1} << 60, std::int64_t{0}, std::int64_t{1} << 60})
    map.add(sample_step(step));
  EXPECT_LE(map.picture(0, 1, 1).rows[0].size(), 128U);
}

}  // namespace
}  // namespace flopmeter
