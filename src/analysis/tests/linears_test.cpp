// SPDX-License-Identifier: Apache-2.0
#include "../src/linears.h"

#include "../src/example_window.h"

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

constexpr double tokens = 32 * 512;

/// The example's linears, with shapes: forward 20 ms, backward 39 ms per step.
Evidence with_shapes(bool measured) {
  return example_window({}, [&](Evidence& window) {
    window.profiles[0].rows[0].shape = "[256,16384] [16384,1024]";
    window.profiles[0].rows[1].shape = "[1024] [16384,256] [256,1024]";
    if (!measured) return;
    for (const auto& [rows, rate] : {std::pair{256, 1e11}, {16384, 4e11}, {131072, 8e11}}) {
      for (const std::int64_t width : {512, 4096, 32768}) {
        window.peaks.shapes.push_back({Dtype::bf16, rows, width, {rate}});
        window.peaks.shapes.push_back({Dtype::fp16, rows, width, {2 * rate}});
      }
    }
  });
}

class Linears : public testing::Test {
 protected:
  void look_at(Evidence window) {
    evidence_ = std::move(window);
    totals_ = summarize(evidence_);
    ops_ = op_times(evidence_);
    budget_ = make_budget(evidence_, ops_);
  }
  Evidence evidence_;
  StepTotals totals_;
  OpTimes ops_;
  TimeBudget budget_;
  RuleContext context_{evidence_, totals_, ops_, budget_};
};

/// Two sizes of one operator: the line through their times is 30 us and 1 us for each 1e6 FLOPs.
Evidence of_two_sizes(double rate) {
  Evidence window = example_window();
  window.peaks.memory_bytes_per_second = 1e10;
  if (rate > 0) window.peaks.shapes = {{Dtype::bf16, 16384, 64, {rate}}};
  window.profiles[0].rows = {{.name = "aten::addmm",
                              .kind = OpKind::compute,
                              .calls = 4,
                              .self = {4 * 130e-6},
                              .phase = Phase::forward,
                              .shape = "[64] [16384,64] [64,64]",
                              .flops = 4 * 100'000'000,
                              .bytes = 4 * 2112},
                             {.name = "aten::addmm",
                              .kind = OpKind::compute,
                              .calls = 2,
                              .self = {2 * 430e-6},
                              .phase = Phase::forward,
                              .shape = "[64] [256,16384] [16384,64]",
                              .flops = 2 * 400'000'000,
                              .bytes = 2 * 4096}};
  return window;
}

TEST_F(Linears, share_their_start_and_their_weights_among_all_rows) {
  look_at(of_two_sizes(0));
  ASSERT_DOUBLE_EQ(context_.tokens_at_once(), tokens);
  const double forward = 4 * 2112 * (64 * 64.0) / (2 * 16384 * 64.0 + 64 * 64.0);
  const double gradient = 2 * 4096 * (256 * 64.0) / (256 * 16384.0 + 16384 * 64.0 + 256 * 64.0);
  const double shared = 6 * 30e-6 + (forward + gradient) / 1e10;
  EXPECT_NEAR(saved_by_rows(context_, 8), shared * 7 / 8, 1e-12);
}

TEST_F(Linears, with_more_rows_reach_the_rate_measured_for_them) {
  look_at(of_two_sizes(2e12));  // twice that of the line
  EXPECT_NEAR(saved_by_rows(context_, 8), 6 * 30e-6 * 7 / 8 + 600e-6, 1e-12);
}

TEST_F(Linears, with_weights_in_the_cache_do_not_exceed_the_rate_measured_for_them) {
  Evidence window = of_two_sizes(1e12);         // that of the line
  window.peaks.memory_bytes_per_second = 50e6;  // would take longer than the products
  look_at(std::move(window));
  EXPECT_NEAR(saved_by_rows(context_, 8), 6 * 30e-6 * 7 / 8, 1e-12);
}

TEST_F(Linears, in_another_dtype_take_the_measured_time) {
  look_at(with_shapes(true));
  EXPECT_NEAR(saved_in(context_, Dtype::fp16).value(), (0.059 - 150 * 2e-6) / 2, 1e-9);
  EXPECT_FALSE(saved_in(context_, Dtype::fp64));
}

TEST_F(Linears, are_unchanged_without_measurements) {
  look_at(with_shapes(false));
  EXPECT_EQ(saved_by_rows(context_, 8), 0);
  EXPECT_FALSE(saved_in(context_, Dtype::fp16));
}

}  // namespace
}  // namespace flopmeter
