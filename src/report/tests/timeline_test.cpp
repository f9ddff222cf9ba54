// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/timeline.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace flopmeter {
namespace {

constexpr std::array<std::string_view, 2> fields = {"mfu", "step_seconds"};

StepRecord record(std::int64_t step, std::optional<double> mfu) {
  StepRecord r;
  r.step = step;
  r.time_unix = 1000 + static_cast<double>(step);
  r.step_seconds = {0.5};
  r.mfu = mfu;
  return r;
}

TEST(Timeline, a_million_steps_keep_every_spike) {
  Timeline timeline{fields, 2000};
  for (std::int64_t step = 0; step < 1'000'000; ++step) {
    double mfu = 0.4;
    if (step == 123'457) mfu = 0.01;
    if (step == 777'777) mfu = 0.93;
    timeline.add(record(step, mfu));
  }
  EXPECT_LE(timeline.buckets().size(), 2000U);
  EXPECT_GT(timeline.buckets().size(), 900U);
  const auto at = [&](std::int64_t step) {
    return timeline.buckets().at(step / timeline.steps_per_bucket()).spreads[0];
  };
  EXPECT_EQ(at(123'457).low, 0.01);
  EXPECT_EQ(at(123'457).high, 0.4);
  EXPECT_EQ(at(777'777).high, 0.93);
  EXPECT_NEAR(*at(777'777).mean(), 0.4, 0.53 / 500);
}

TEST(Timeline, a_short_run_keeps_every_step) {
  Timeline timeline{fields, 2000};
  for (std::int64_t step = 1; step <= 1500; ++step)
    timeline.add(record(step, static_cast<double>(step)));
  ASSERT_EQ(timeline.buckets().size(), 1500U);
  EXPECT_EQ(timeline.steps_per_bucket(), 1);
  EXPECT_EQ(timeline.buckets().at(700).spreads[0].mean(), 700.0);
}

TEST(Timeline, unmeasured_values_stay_empty) {
  Timeline timeline{fields, 4};
  for (std::int64_t step = 0; step < 100; ++step) timeline.add(record(step, std::nullopt));
  for (const auto& [index, bucket] : timeline.buckets()) {
    EXPECT_EQ(bucket.spreads[0].mean(), std::nullopt);
    EXPECT_EQ(bucket.spreads[1].mean(), 0.5);
  }
}

TEST(Timeline, ranks_with_the_same_step_fall_together) {
  Timeline timeline{fields, 10};
  for (const double mfu : {0.2, 0.6}) timeline.add(record(7, mfu));
  ASSERT_EQ(timeline.buckets().size(), 1U);
  const ValueSpread& mfu = timeline.buckets().begin()->second.spreads[0];
  EXPECT_DOUBLE_EQ(*mfu.mean(), 0.4);
  EXPECT_EQ(mfu.low, 0.2);
  EXPECT_EQ(mfu.high, 0.6);
}

/// For any steps in any order: nothing is lost, extremes are the true ones, buckets are
/// in order and do not overlap, and there are never too many.
TEST(Timeline, holds_for_random_runs) {
  std::mt19937_64 random{20'26};
  for (int round = 0; round < 200; ++round) {
    const std::size_t most = 2 + random() % 50;
    const std::int64_t span =
        1 + static_cast<std::int64_t>(random() % (round % 2 == 0 ? 300 : 1U << 30U));
    Timeline timeline{fields, most};
    std::vector<std::pair<std::int64_t, double>> truth;
    const std::size_t count = 1 + random() % 500;
    for (std::size_t i = 0; i < count; ++i) {
      const auto step =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(span)) - span / 3;
      const double value = static_cast<double>(random() % 1000) / 1000;
      truth.emplace_back(step, value);
      timeline.add(record(step, value));
      ASSERT_LE(timeline.buckets().size(), most);
    }
    std::int64_t total = 0;
    std::int64_t before = std::numeric_limits<std::int64_t>::min();
    for (const auto& [index, bucket] : timeline.buckets()) {
      ASSERT_GT(bucket.first_step, before);
      ASSERT_LT(bucket.last_step - bucket.first_step, timeline.steps_per_bucket());
      before = bucket.last_step;
      ValueSpread expected;
      for (const auto& [step, value] : truth) {
        if (step >= bucket.first_step && step <= bucket.last_step) expected.add(value);
      }
      ASSERT_EQ(bucket.steps, expected.count);
      ASSERT_EQ(bucket.spreads[0].count, expected.count);
      ASSERT_EQ(bucket.spreads[0].low, expected.low);
      ASSERT_EQ(bucket.spreads[0].high, expected.high);
      ASSERT_NEAR(bucket.spreads[0].sum, expected.sum, 1e-9);
      total += bucket.spreads[0].count;
    }
    ASSERT_EQ(total, static_cast<std::int64_t>(count));
  }
}

TEST(QuantileSketch, quantiles_of_merged_sketches_are_right_to_two_percent) {
  std::vector<double> values;
  QuantileSketch whole;
  QuantileSketch part;
  for (int i = 0; i < 2000; ++i) {
    const double value = 0.01 * std::exp(0.002 * static_cast<double>((i * 7919) % 2000));
    values.push_back(value);
    (i % 2 == 0 ? whole : part).add(value);
  }
  whole.add(part);
  std::sort(values.begin(), values.end());
  for (const double share : {0.0, 0.05, 0.5, 0.95, 1.0}) {
    const double expected = values[static_cast<std::size_t>(std::lround(share * 1999))];
    EXPECT_NEAR(*whole.at(share) / expected, 1, 0.021) << share;
  }
  EXPECT_FALSE(QuantileSketch{}.at(0.5));
}

}  // namespace
}  // namespace flopmeter
