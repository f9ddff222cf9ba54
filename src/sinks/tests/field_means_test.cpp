// SPDX-License-Identifier: Apache-2.0
#include "../src/field_means.h"

#include "support.h"

#include <flopmeter/core/step_totals.h>

#include <gtest/gtest.h>

#include <cmath>

namespace flopmeter {
namespace {

TEST(FieldMeans, a_ratio_is_weighted_by_time_as_in_step_totals) {
  FieldMeans means;
  StepTotals totals;
  for (std::int64_t step = 1; step <= 5; ++step) {
    StepRecord record = sample_step(step);
    record.step_seconds = {0.1 * static_cast<double>(step)};
    record.mfu = 0.1 * static_cast<double>(step);
    if (step == 3) record.mfu.reset();
    means.add(record);
    totals.add(record);
  }
  EXPECT_DOUBLE_EQ(*means.mean("mfu"), *totals.mfu());
  EXPECT_DOUBLE_EQ(*means.mean("tokens_per_second"), *totals.tokens_per_second());
  EXPECT_NEAR(*means.mean("tflops_per_device"), *totals.flops_per_second() * 1e-12, 1e-9);
  EXPECT_DOUBLE_EQ(*means.mean("step_seconds"), totals.step_seconds()->value);
}

TEST(FieldMeans, an_absent_member_of_a_group_counts_as_zero) {
  FieldMeans means;
  StepRecord record;
  record.phases[static_cast<std::size_t>(Phase::checkpoint)] = Seconds{1};
  record.tokens = 100;
  means.add(record);
  means.add(StepRecord{});
  EXPECT_DOUBLE_EQ(*means.mean("phases.checkpoint"), 0.5);
  EXPECT_DOUBLE_EQ(*means.mean("tokens"), 100) << "unknown is not 0";
  EXPECT_FALSE(means.mean("phases.data"));
}

TEST(FieldMeans, the_newest_value_of_a_gauge_holds_and_values_that_are_not_finite_are_skipped) {
  FieldMeans means;
  StepRecord record;
  record.loss = 3;
  means.add(record);
  record.loss = std::nan("");
  means.add(record);
  EXPECT_EQ(means.mean("loss"), 3);
  EXPECT_FALSE(means.mean("grad_norm"));
  means.clear();
  EXPECT_EQ(means.steps(), 0);
  EXPECT_FALSE(means.mean("loss"));
}

}  // namespace
}  // namespace flopmeter
