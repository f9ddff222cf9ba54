// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/utilization.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

PeakTable table() {
  PeakTable peaks;
  peaks.set(Dtype::bf16, {1e12});
  peaks.set(Dtype::fp8, {2e12});
  return peaks;
}

std::array<WideInt, dtype_count> work(std::initializer_list<std::pair<Dtype, WideInt>> items) {
  std::array<WideInt, dtype_count> flops{};
  for (const auto& [dtype, amount] : items) flops[static_cast<std::size_t>(dtype)] = amount;
  return flops;
}

TEST(Utilization, mixed_dtypes_are_weighted_by_ideal_time) {
  const Utilization rates{table()};
  // 0.5 s in bf16 and 0.25 s in fp8 at best; the step took 1.5 s.
  const auto flops = work({{Dtype::bf16, 500'000'000'000}, {Dtype::fp8, 500'000'000'000}});
  EXPECT_DOUBLE_EQ(*rates.utilization(flops, {1.5}, 1), 0.5);
  EXPECT_DOUBLE_EQ(*rates.utilization(flops, {1.5}, 2), 0.25);
}

TEST(Utilization, a_dtype_without_a_peak_leaves_mfu_empty_and_is_named) {
  const Utilization rates{table()};
  const auto flops = work({{Dtype::fp32, 1}});
  EXPECT_FALSE(rates.utilization(flops, {1}, 1));
  EXPECT_EQ(rates.missing_peak(flops), Dtype::fp32);
}

TEST(Utilization, utilization_is_empty_without_time_and_never_clamped) {
  const Utilization rates{table()};
  const auto flops = work({{Dtype::bf16, 3'000'000'000'000}});
  EXPECT_FALSE(rates.utilization(flops, {0}, 1));
  EXPECT_DOUBLE_EQ(*rates.utilization(flops, {1}, 1), 3.0);
}

TEST(Utilization, finish_fills_mfu_and_hfu_and_clears_what_is_unknown) {
  StepRecord record;
  record.step_seconds = {2};
  record.time_source = TimeSource::device;
  record.model_flops = Flops{1'000'000'000'000};
  record.model_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = 1'000'000'000'000;
  record.hfu = 0.9;  // stale
  Utilization{table()}.finish(record);
  EXPECT_DOUBLE_EQ(*record.mfu, 0.5);
  EXPECT_DOUBLE_EQ(record.ideal_seconds->value, 1);
  EXPECT_FALSE(record.hfu);
}

TEST(Utilization, a_step_of_unknown_time_has_an_ideal_time_but_no_mfu) {
  StepRecord record;
  record.step_seconds = {2};
  record.model_flops = Flops{1'000'000'000'000};
  record.model_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = 1'000'000'000'000;
  Utilization{table()}.finish(record);
  EXPECT_FALSE(record.mfu);
  EXPECT_DOUBLE_EQ(record.ideal_seconds->value, 1);
}

}  // namespace
}  // namespace flopmeter
