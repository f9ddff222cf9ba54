// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/device_bound.h>
#include <flopmeter/core/step_fields.h>
#include <flopmeter/core/step_totals.h>

#include <gtest/gtest.h>

#include <array>

namespace flopmeter {
namespace {

StepRecord train_step(double seconds, double mfu) {
  StepRecord record;
  record.step_seconds = {seconds};
  record.mfu = mfu;
  record.tokens = 100;
  record.samples = 4;
  record.phases[static_cast<std::size_t>(Phase::forward)] = Seconds{seconds / 2};
  return record;
}

TEST(StepTotals, mfu_is_ideal_time_over_wall_time) {
  StepTotals totals;
  totals.add(train_step(1, 0.5));
  totals.add(train_step(3, 0.1));
  EXPECT_DOUBLE_EQ(*totals.mfu(), (0.5 + 0.3) / 4);
  EXPECT_DOUBLE_EQ(*totals.tokens_per_second(), 50);
  EXPECT_DOUBLE_EQ(*totals.samples_per_second(), 2);
  EXPECT_DOUBLE_EQ(*totals.phase(Phase::forward), 2);
  EXPECT_DOUBLE_EQ(*totals.phase_share(Phase::forward), 0.5);
  EXPECT_FALSE(totals.phase(Phase::data));
  EXPECT_DOUBLE_EQ(totals.step_seconds()->value, 2);
}

TEST(StepTotals, a_time_that_no_step_can_have_gives_no_rate) {
  StepTotals totals;
  totals.add(train_step(1e-320, 0.5));
  EXPECT_FALSE(totals.tokens_per_second());
}

TEST(StepTotals, merged_records_sum_like_their_steps) {
  StepTotals single;
  StepTotals merged;
  StepRecord sum = train_step(1, 0.5);
  sum.loss = 0;
  single.add(sum);
  for (int i = 1; i < 5; ++i) {
    StepRecord next = train_step(1.0 + i, 0.1 * i);
    next.step = i;
    next.loss = i;
    single.add(next);
    ASSERT_TRUE(merge(sum, next));
  }
  EXPECT_EQ(sum.steps, 5);
  EXPECT_EQ(sum.step, 4);
  EXPECT_EQ(sum.loss, 4);
  merged.add(sum);
  EXPECT_EQ(merged.steps, single.steps);
  EXPECT_EQ(merged.steps_with_mfu, single.steps_with_mfu);
  EXPECT_EQ(merged.tokens.amount, single.tokens.amount);
  EXPECT_EQ(merged.micro_batches, single.micro_batches);
  EXPECT_DOUBLE_EQ(*merged.mfu(), *single.mfu());
  EXPECT_DOUBLE_EQ(merged.seconds, single.seconds);
  EXPECT_DOUBLE_EQ(*merged.phase(Phase::forward), *single.phase(Phase::forward));
  EXPECT_DOUBLE_EQ(merged.step_seconds()->value, single.step_seconds()->value);
}

TEST(StepTotals, steps_of_different_kinds_are_not_merged) {
  const StepRecord first = train_step(1, 0.5);
  const auto refuses = [&](auto change) {
    StepRecord into = first;
    StepRecord next = first;
    change(next);
    return !merge(into, next) && into.steps == 1;
  };
  EXPECT_FALSE(refuses([](StepRecord&) {}));
  EXPECT_TRUE(refuses([](StepRecord& next) { next.tag = StepTag::profile; }));
  EXPECT_TRUE(refuses([](StepRecord& next) { next.stage = "rollout"; }));
  EXPECT_TRUE(refuses([](StepRecord& next) { next.mfu.reset(); }));
  EXPECT_TRUE(refuses([](StepRecord& next) { next.flops_source = FlopsProvenance::counted; }));
  EXPECT_TRUE(refuses([](StepRecord& next) { next.micro_batches = 2; }));
}

TEST(StepTotals, idle_time_shows_whether_the_device_or_the_host_limits_the_steps) {
  const auto bound = [](double least, double most) {
    StepRecord record = train_step(1, 0.5);
    record.process_step = 1;
    record.time_source = TimeSource::device;
    record.device_idle_min_seconds = Seconds{least};
    record.device_idle_max_seconds = Seconds{most};
    StepTotals totals;
    totals.add(record);
    return device_bound(totals.device);
  };
  EXPECT_EQ(bound(0, 0.01), "device-bound");
  EXPECT_EQ(bound(0.2, 0.3), "host-bound");
  EXPECT_EQ(bound(0, 0.3), "");
  EXPECT_EQ(device_bound({}), "");
}

TEST(StepTotals, only_train_records_count_and_others_are_listed_by_tag) {
  StepTotals totals;
  totals.add(train_step(1, 0.5));
  for (const StepTag tag : {StepTag::profile, StepTag::compile, StepTag::evaluation}) {
    StepRecord record = train_step(10, 0.01);
    record.tag = tag;
    totals.add(record);
  }
  EXPECT_EQ(totals.steps, 1);
  EXPECT_DOUBLE_EQ(*totals.mfu(), 0.5);
  EXPECT_DOUBLE_EQ(totals.other_tags.at(StepTag::compile).seconds, 10);
}

TEST(StepTotals, the_time_left_counts_evaluations_but_no_compilation) {
  StepTotals totals;
  EXPECT_FALSE(totals.remaining(10));
  for (std::int64_t step = 1; step <= 4; ++step) {
    StepRecord record = train_step(1, 0.5);
    record.step = step;
    totals.add(record);
  }
  for (const StepTag tag : {StepTag::compile, StepTag::evaluation}) {
    StepRecord record = train_step(2, 0.5);
    record.tag = tag;
    totals.add(record);
  }
  EXPECT_FALSE(totals.remaining(std::nullopt));
  EXPECT_DOUBLE_EQ(totals.remaining(10)->value, 6 * 1.5);
  EXPECT_DOUBLE_EQ(totals.remaining(3)->value, 0);
}

TEST(StepTotals, a_step_without_an_mfu_is_on_neither_side_of_the_ratio) {
  StepTotals totals;
  EXPECT_FALSE(totals.mfu());
  totals.add(train_step(1, 0.5));
  StepRecord unknown = train_step(9, 0);
  unknown.mfu.reset();
  totals.add(unknown);
  EXPECT_DOUBLE_EQ(*totals.mfu(), 0.5);
  EXPECT_DOUBLE_EQ(totals.seconds, 10);
}

TEST(StepTotals, adding_totals_equals_adding_records) {
  StepTotals one, two, both;
  one.add(train_step(1, 0.5));
  two.add(train_step(3, 0.1));
  both.add(train_step(1, 0.5));
  both.add(train_step(3, 0.1));
  one += two;
  EXPECT_DOUBLE_EQ(*one.mfu(), *both.mfu());
  EXPECT_EQ(one.steps, both.steps);
  EXPECT_DOUBLE_EQ(*one.phase(Phase::forward), *both.phase(Phase::forward));
}

TEST(StepTotals, ranks_divide_ideal_time_by_devices_times_wall_time) {
  std::array<StepTotals, 2> ranks;
  for (StepTotals& rank : ranks) {
    StepRecord record = train_step(2, &rank == ranks.data() ? 0.2 : 0.4);
    record.data_parallel = 2;
    rank.add(record);
    rank.add(record);
  }
  const StepTotals all = StepTotals::of_ranks(ranks);
  EXPECT_EQ(all.steps, 2);
  EXPECT_EQ(all.devices, 2);
  EXPECT_DOUBLE_EQ(all.seconds, 4);
  EXPECT_DOUBLE_EQ(*all.mfu(), 0.3);
  EXPECT_DOUBLE_EQ(*all.tokens_per_second(), 100);
  EXPECT_DOUBLE_EQ(*all.phase(Phase::forward), 2);
}

TEST(StepTotals, a_rank_that_fell_silent_does_not_shorten_the_mean_step) {
  std::array<StepTotals, 2> ranks;
  for (int step = 0; step < 4; ++step) ranks[0].add(train_step(2, 0.2));
  ranks[1].add(train_step(2, 0.2));
  const StepTotals all = StepTotals::of_ranks(ranks);
  EXPECT_EQ(all.steps, 4);
  EXPECT_DOUBLE_EQ(all.step_seconds()->value, 2);
  EXPECT_DOUBLE_EQ(*all.phase(Phase::forward), 4);
}

TEST(StepTotals, ranks_that_share_their_samples_count_them_once) {
  std::array<StepTotals, 4> ranks;
  for (StepTotals& rank : ranks) {
    StepRecord record = train_step(1, 0.5);
    record.data_parallel = 2;
    rank.add(record);
  }
  EXPECT_DOUBLE_EQ(*StepTotals::of_ranks(ranks).tokens_per_second(), 200);
}

TEST(StepTotals, ranks_count_replicated_work_once) {
  std::array<StepTotals, 2> ranks;
  for (StepTotals& rank : ranks) {
    StepRecord record = train_step(1, 0.4);
    record.model_flops = Flops{100};
    if (&rank != ranks.data()) record.replicated_flops = Flops{50};
    rank.add(record);
    EXPECT_DOUBLE_EQ(*rank.mfu(), 0.4) << "a rank alone has all of its work";
  }
  const StepTotals all = StepTotals::of_ranks(ranks);
  EXPECT_EQ(all.model_flops.amount, 150);
  EXPECT_DOUBLE_EQ(*all.mfu(), 0.3);
}

TEST(StepTotals, goodput_is_step_time_over_run_time_of_the_newest_record) {
  StepTotals totals;
  EXPECT_FALSE(totals.goodput());
  StepRecord record = train_step(1, 0.5);
  record.time_unix = 10;
  record.run_seconds = Seconds{4};
  record.productive_seconds = Seconds{1};
  totals.add(record);
  EXPECT_DOUBLE_EQ(*totals.goodput(), 0.25);
}

}  // namespace
}  // namespace flopmeter
