// SPDX-License-Identifier: Apache-2.0
#include "../../../tests/support/random_records.h"
#include "simulated_run.h"

#include <flopmeter/analysis/merge.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopmeter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto old_start = "20240128_103000";
constexpr auto new_start = "20240129_103000";

StepRecord record_of(std::int64_t step, int rank, int world) {
  StepRecord record;
  record.step = step;
  record.rank = rank;
  record.world_size = world;
  record.data_parallel = world;
  record.step_seconds = {0.5 + 0.1 * rank};
  record.model_flops = Flops{1000 + rank};
  record.hardware_flops = Flops{2000};
  record.mfu = 0.4;
  record.tokens = 64;
  record.samples = 2;
  return record;
}

class Merge : public testing::Test {
 protected:
  void write(const std::string& stamp, const StepRecord& record) {
    std::string line;
    JsonWriter json{line};
    write_record(json, record);
    append_file(
        directory_.path() + "/records_" + stamp + ".rank" + std::to_string(record.rank) + ".jsonl",
        line + "\n");
  }
  MergedRun merge(const MergeOptions& options = {}) {
    const auto run = open_run(directory_.path());
    EXPECT_TRUE(run);
    return merge_ranks(*run, options);
  }

  TemporaryDirectory directory_;
};

TEST_F(Merge, sums_are_exact_and_name_the_slowest_rank) {
  for (int rank = 0; rank < 3; ++rank) {
    for (int step = 1; step <= 4; ++step) write(new_start, record_of(step, rank, 3));
  }
  const MergedRun merged = merge();
  EXPECT_EQ(merged.world_size, 3);
  EXPECT_EQ(merged.totals.complete_steps, 4);
  EXPECT_EQ(merged.totals.model_flops, Flops{4 * 3003});
  EXPECT_EQ(merged.totals.hardware_flops, Flops{4 * 6000});
  EXPECT_EQ(merged.totals.tokens, 4 * 3 * 64);
  EXPECT_EQ(merged.steps[0].seconds.most_rank, 2);
  EXPECT_EQ(merged.steps[0].seconds.least_rank, 0);
  EXPECT_NEAR(merged.world.seconds, 4 * 0.6, 1e-12) << "the mean of the ranks";
  EXPECT_NEAR(*merged.world.mfu(), 0.4, 1e-12);
  EXPECT_NEAR(*merged.world.tokens_per_second(), 3 * 64 / 0.6, 1e-9);
}

TEST_F(Merge, ranks_that_share_samples_count_them_once) {
  for (int rank = 0; rank < 4; ++rank) {
    StepRecord record = record_of(1, rank, 4);
    record.data_parallel = 2;
    record.replicated_flops = Flops{rank % 2 == 0 ? 0 : 101};
    write(new_start, record);
  }
  const MergedRun merged = merge();
  EXPECT_EQ(merged.totals.tokens, 2 * 64);
  EXPECT_EQ(merged.totals.samples, 2 * 2);
  EXPECT_EQ(merged.totals.model_flops, Flops{4006 - 2 * 101});
  EXPECT_EQ(merged.totals.hardware_flops, Flops{8000});
  EXPECT_EQ(merged.world.model_flops.amount, 4006 - 2 * 101);
}

TEST_F(Merge, one_rank_of_each_group_may_report_the_samples) {
  for (int rank = 0; rank < 4; ++rank) {
    StepRecord record = record_of(1, rank, 4);
    record.data_parallel = 2;
    if (rank >= 2) record.tokens.reset();
    write(new_start, record);
  }
  EXPECT_EQ(merge().totals.tokens, 2 * 64);
}

TEST_F(Merge, missing_and_stopped_ranks_are_named) {
  for (int rank = 0; rank < 5; ++rank) {
    if (rank == 3) continue;
    for (int step = 1; step <= (rank == 1 ? 10 : 40); ++step)
      write(new_start, record_of(step, rank, 5));
  }
  const MergedRun merged = merge();
  EXPECT_THAT(merged.missing, ElementsAre(3));
  EXPECT_THAT(merged.behind, ElementsAre(1));
  EXPECT_EQ(merged.ranks[3].score.verdict, Verdict::missing);
  EXPECT_EQ(merged.ranks[1].score.verdict, Verdict::behind);
  EXPECT_EQ(merged.totals.complete_steps, 0);
  EXPECT_EQ(merged.totals.model_flops, std::nullopt) << "a rank's part is not known";
  EXPECT_EQ(merged.totals.reported_model_flops, Flops{40 * (1000 + 1002 + 1004) + 10 * 1001});
  EXPECT_TRUE(merged.world.mfu());
}

TEST_F(Merge, a_restart_with_another_world_size_counts_each_step_once) {
  for (int rank = 0; rank < 4; ++rank) {
    for (int step = 1; step <= 6; ++step) write(old_start, record_of(step, rank, 4));
  }
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 5; step <= 8; ++step) {
      StepRecord record = record_of(step, rank, 2);
      record.time_unix = 1e6;
      write(new_start, record);
    }
  }
  const MergedRun merged = merge();
  EXPECT_EQ(merged.world_size, 2);
  ASSERT_EQ(merged.starts.size(), 2U);
  EXPECT_EQ(merged.starts[0].world_size, 4);
  EXPECT_EQ(merged.starts[1].ranks, 2);
  EXPECT_EQ(merged.ranks[0].repeated_steps, 2);
  EXPECT_THAT(merged.missing, IsEmpty());
  EXPECT_THAT(merged.behind, IsEmpty()) << "ranks of the larger world are gone on purpose";
  // Steps 1 to 4 by four ranks, 5 to 8 by two: what four did of 5 and 6 was done again.
  EXPECT_EQ(merged.totals.complete_steps, 8);
  EXPECT_EQ(merged.totals.model_flops, Flops{4 * 4006 + 4 * 2001});
}

TEST_F(Merge, records_of_other_tags_are_excluded) {
  for (int rank = 0; rank < 2; ++rank) {
    write(new_start, record_of(1, rank, 2));
    StepRecord record = record_of(2, rank, 2);
    record.tag = StepTag::evaluation;
    write(new_start, record);
  }
  EXPECT_EQ(merge().totals.model_flops, Flops{2001});
}

struct Sample : Merge {
  MergedRun simulate(SimulatedRun sim) {
    total_ = write_run(sim, directory_.path());
    return merge();
  }
  static std::vector<int> judged(const MergedRun& merged, Verdict verdict) {
    std::vector<int> found;
    for (const RankSummary& rank : merged.ranks) {
      if (rank.score.verdict == verdict) found.push_back(rank.rank);
    }
    return found;
  }
  WideInt total_ = 0;
};

TEST_F(Sample, two_hundred_ranks_of_unequal_work_with_one_slow_and_three_missing) {
  const MergedRun merged = simulate({.missing = {5, 77, 199}, .slow_rank = 42});
  EXPECT_THAT(merged.missing, ElementsAre(5, 77, 199));
  EXPECT_THAT(judged(merged, Verdict::slow), ElementsAre(42));
  EXPECT_NEAR(*merged.ranks[42].score.relative, 1 / 1.5, 0.05);
  EXPECT_EQ(merged.totals.reported_model_flops, Flops{total_});
}

TEST_F(Sample, in_step_the_rank_that_waits_least_for_its_work_is_slow) {
  const MergedRun merged = simulate({.ranks = 20, .slow_rank = 3, .in_step = true});
  EXPECT_THAT(judged(merged, Verdict::slow), ElementsAre(3));
  EXPECT_GT(*merged.ranks[3].score.lead, 0);
}

TEST_F(Sample, in_step_without_collective_times_no_rank_is_classified_and_the_signal_is_listed) {
  const MergedRun merged =
      simulate({.ranks = 20, .slow_rank = 3, .in_step = true, .records_waits = false});
  EXPECT_THAT(judged(merged, Verdict::slow), IsEmpty());
  ASSERT_FALSE(merged.missing_signals.empty());
  EXPECT_THAT(merged.missing_signals.back(), HasSubstr("cannot be compared"));
}

}  // namespace
}  // namespace flopmeter
