// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/flop_estimator.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

TEST(BatchText, reads_back_what_it_writes) {
  const std::array<SequenceGroup, 2> sequences = {{{2048, 4}, {17, 1}}};
  const std::array<ImageShape, 2> images = {{{1, 24, 24}, {8, 16, 32}}};
  const BatchShape shape{.sequences = sequences, .padded_length = 2048, .images = images};
  const std::string text = to_text(shape);
  EXPECT_EQ(text, "4x2048,1x17 padded=2048 images=1x24x24,8x16x32");
  const auto batch = parse_batch(text);
  ASSERT_TRUE(batch);
  EXPECT_EQ(to_text({.sequences = batch->sequences,
                     .padded_length = batch->padded_length,
                     .images = batch->images}),
            text);
  EXPECT_EQ(to_text({.sequences = std::span{sequences}.first(1)}), "4x2048");
  EXPECT_EQ(parse_batch("4x2048")->sequences[0].count, 4);
  EXPECT_EQ(to_text({}), "");
}

TEST(BatchText, anything_else_is_refused) {
  for (const char* text : {"",
                           "4",
                           "4x",
                           "x5",
                           "0x5",
                           "4x-1",
                           "4x5x6",
                           "4x99999999999",
                           "4x5 padded=",
                           "4x5 padded=0",
                           "4x5 images=1x2",
                           "4x5 other=1",
                           "padded=5"})
    EXPECT_FALSE(parse_batch(text)) << text;
}

}  // namespace
}  // namespace flopmeter
