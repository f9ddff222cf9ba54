// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/rule.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// The finding about a device that waits: 50 µs for launches, `data` for data, 5 for the loop's
/// code.
Finding find(std::int64_t total, std::int64_t data, const StepTotals& totals) {
  TimeBudget budget{.total = 1000 * total};
  budget.lines = {{causes::launch_overhead, 50'000},
                  {causes::data_loading, 1000 * data},
                  {causes::loop, 5'000},
                  {causes::optimizer, 16'000},
                  {causes::matmul_inefficiency, 1000 * (total - data - 71)}};
  const Evidence evidence;
  const OpTimes ops;
  const auto named = [](const Rule* rule) { return rule->name == "launch_overhead"; };
  const auto rule = std::find_if(rules().begin(), rules().end(), named);
  return (*rule)->find({evidence, totals, ops, budget}).value();
}

StepTotals device_steps() {
  StepTotals totals;
  totals.steps = totals.device.steps = 1;
  return totals;
}

TEST(LaunchOverhead, a_host_that_gets_ahead_hides_its_other_work) {
  EXPECT_NEAR(*find(100, 10, device_steps()).share, 0.65, 1e-4);
}

TEST(LaunchOverhead, a_loader_that_takes_longer_than_the_device_is_not_hidden) {
  EXPECT_NEAR(*find(110, 39, device_steps()).share, 0.6, 1e-4);  // 44 of 110 remain
}

TEST(LaunchOverhead, a_fifth_of_idle_time_is_notable_on_a_device) {
  EXPECT_NEAR(*find(250, 10, device_steps()).share, 0.26, 1e-4);  // 65 of 250
}

TEST(LaunchOverhead, a_larger_batch_shares_launches_and_the_optimizer) {
  StepTotals totals = device_steps();
  totals.micro_batches = 1;
  totals.samples.amount = 2;
  totals.tokens.amount = 512;
  // 26 remain: 24 of the device and an eighth of its optimizer
  EXPECT_NEAR(*find(100, 5, totals).share, 0.74, 1e-4);
}

TEST(LaunchOverhead, the_code_of_a_larger_batch_runs_with_colder_caches) {
  StepTotals totals;
  totals.steps = totals.micro_batches = 1;
  totals.samples.amount = 2;
  totals.tokens.amount = 512;
  EXPECT_NEAR(*find(100, 5, totals).share, 0.71 * (1 - 1.5 / 8), 1e-4);
}

}  // namespace
}  // namespace flopmeter
