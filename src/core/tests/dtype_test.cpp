// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/dtype.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

TEST(Dtype, every_name_is_read_back) {
  for (std::size_t i = 0; i + 1 < dtype_count; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype) << to_string(dtype);
  }
}

TEST(Dtype, spellings_of_torch_and_of_trainers_are_read) {
  for (const char* text :
       {"FP8", "FP8-MX", "FP8-CS", "fp8_ds", "MXFP8", "float8_e4m3fn", "amp_fp8"})
    EXPECT_EQ(parse_dtype(text), Dtype::fp8) << text;
  for (const char* text : {"BF16", "torch.bfloat16", "bf16-mixed", "amp_bf16"})
    EXPECT_EQ(parse_dtype(text), Dtype::bf16) << text;
  EXPECT_EQ(parse_dtype("NVFP4"), Dtype::fp4);
  EXPECT_EQ(parse_dtype("16-mixed"), Dtype::fp16);
}

TEST(Dtype, text_that_is_not_exactly_one_dtype_is_refused) {
  for (const char* text : {"", "-", "fp", "fp88", "FP8-CS (FP8-MX)", "bf16/fp16", "other", "mixed"})
    EXPECT_FALSE(parse_dtype(text)) << text;
}

}  // namespace
}  // namespace flopmeter
