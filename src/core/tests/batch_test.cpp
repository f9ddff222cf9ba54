// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/batch.h>
#include <flopmeter/core/fixed_batch.h>

#include <gtest/gtest.h>

#include <string>

namespace flopmeter {
namespace {

TEST(FixedBatch, text_reads_back_as_the_same_batch) {
  FixedBatch batch;
  EXPECT_EQ(to_text(batch), "");
  batch.add_sequences(2048, 3);
  batch.add_sequences(17, 1);
  batch.add_sequences(2048, 1);
  batch.set_padded_length(2048);
  batch.add_image({.t = 1, .h = 24, .w = 24});
  batch.add_image({.t = 8, .h = 16, .w = 32});
  const std::string text = to_text(batch);
  EXPECT_EQ(text, "4x2048,1x17 padded=2048 images=1x24x24,8x16x32");
  const auto parsed = parse_batch(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(parsed->signature(), batch.signature());
  EXPECT_EQ(parsed->batch().tokens(), 4 * 2048 + 17);
  EXPECT_EQ(parsed->batch().images[1].w, 32);
}

TEST(FixedBatch, other_text_is_refused) {
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

TEST(FixedBatch, too_many_groups_make_it_unknown) {
  FixedBatch batch;
  std::string text;
  for (std::int64_t length = 1; length <= 97; ++length) {
    EXPECT_EQ(batch.known(), length > 1);
    batch.add_sequences(length, 1);
    text.append(text.empty() ? "" : ",").append("1x").append(std::to_string(length));
  }
  EXPECT_FALSE(batch.known());
  EXPECT_EQ(to_text(batch), "");
  EXPECT_TRUE(batch.batch().sequences.empty());
  EXPECT_FALSE(parse_batch(text));
}

TEST(FixedBatch, a_copy_holds_the_same_shape) {
  FixedBatch batch;
  batch.add_sequences(5, 2);
  batch.add_image({.t = 1, .h = 2, .w = 4});
  const FixedBatch copy = batch;
  EXPECT_EQ(to_text(copy), "2x5 images=1x2x4");
  EXPECT_EQ(copy.signature(), batch.signature());
}

}  // namespace
}  // namespace flopmeter
