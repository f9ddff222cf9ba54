// SPDX-License-Identifier: Apache-2.0
#include "../src/interval_rows.h"

#include "support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopmeter {
namespace {

using testing::ElementsAre;

/// Numbers of the rows of ten steps; `profiled` has another tag.
std::vector<std::int64_t> rows(bool first_row, std::int64_t profiled, int interval = 2) {
  RunContext run = sample_run("");
  run.metadata.log_interval = interval;
  run.first_row = first_row;
  IntervalRows intervals{run};
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= 10; ++step) {
    StepRecord record = sample_step(step);
    if (step == profiled) record.tag = StepTag::profile;
    if (const auto row = intervals.add(record)) steps.push_back(row->last.step);
  }
  return steps;
}

TEST(IntervalRows, a_profiled_step_ends_its_interval) {
  EXPECT_THAT(rows(false, 0), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_THAT(rows(false, 6), ElementsAre(2, 4, 6, 8, 10));
}

TEST(IntervalRows, the_figures_of_a_profiled_step_are_excluded) {
  RunContext run = sample_run("");
  run.metadata.log_interval = 2;
  IntervalRows intervals{run};
  EXPECT_FALSE(intervals.add(sample_step(1)));
  StepRecord slow = sample_step(2);
  slow.tag = StepTag::profile;
  slow.step_seconds = {100};
  const auto row = intervals.add(slow);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->steps, 1);
  EXPECT_EQ(row->step_seconds, sample_step(1).step_seconds);
}

TEST(IntervalRows, the_first_step_is_a_row_on_request) {
  EXPECT_THAT(rows(true, 0), ElementsAre(1, 2, 4, 6, 8, 10));
}

TEST(IntervalRows, the_first_row_waits_for_a_step_with_figures) {
  EXPECT_THAT(rows(true, 1, 5), ElementsAre(2, 5, 10));
}

}  // namespace
}  // namespace flopmeter
