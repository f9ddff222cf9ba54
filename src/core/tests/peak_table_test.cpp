// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/peak_table.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

PeakTable measured() {
  PeakTable table;
  table.shapes = {{Dtype::fp32, 32, 64, {10}},
                  {Dtype::fp32, 512, 64, {50}},
                  {Dtype::fp32, 32, 1024, {40}},
                  {Dtype::fp32, 512, 1024, {80}}};
  return table;
}

TEST(PeakTable, a_measured_shape_reaches_what_was_measured) {
  EXPECT_DOUBLE_EQ(measured().reached(Dtype::fp32, 512, 64, 64)->value, 50);
  EXPECT_DOUBLE_EQ(measured().reached(Dtype::fp32, 32, 256, 4096)->value, 40);
}

TEST(PeakTable, shapes_between_and_beyond_the_measured_ones_follow_their_neighbors) {
  EXPECT_DOUBLE_EQ(measured().reached(Dtype::fp32, 128, 64, 64)->value, 30);
  EXPECT_DOUBLE_EQ(measured().reached(Dtype::fp32, 512, 256, 256)->value, 65);
  EXPECT_DOUBLE_EQ(measured().reached(Dtype::fp32, 1, 8, 8)->value, 10);
  EXPECT_DOUBLE_EQ(measured().reached(Dtype::fp32, 1e6, 1e5, 1e5)->value, 80);
}

TEST(PeakTable, a_dtype_without_measured_shapes_has_no_rate) {
  EXPECT_FALSE(measured().reached(Dtype::bf16, 512, 64, 64));
}

}  // namespace
}  // namespace flopmeter
