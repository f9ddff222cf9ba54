// SPDX-License-Identifier: Apache-2.0
#include "../src/numbers.h"

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

TEST(TraceNumbers, microseconds_become_exact_nanoseconds) {
  EXPECT_EQ(parse_microseconds("12"), 12000);
  EXPECT_EQ(parse_microseconds("12.5"), 12500);
  EXPECT_EQ(parse_microseconds("0.001"), 1);
  EXPECT_EQ(parse_microseconds("-3.25"), -3250);
  // 19 digits: a double would be off by up to 128 ns
  EXPECT_EQ(parse_microseconds("1712195495523352.990"), 1712195495523352990);
  EXPECT_EQ(parse_microseconds("1712195495523352.991"), 1712195495523352991);
}

TEST(TraceNumbers, digits_below_a_nanosecond_are_rounded) {
  EXPECT_EQ(parse_microseconds("1.0004"), 1000);
  EXPECT_EQ(parse_microseconds("1.0005"), 1001);
  EXPECT_EQ(parse_microseconds("1712195495523352.9904999999999"), 1712195495523352990);
  EXPECT_EQ(parse_microseconds("1712195495523352.9906"), 1712195495523352991);
}

TEST(TraceNumbers, exponents_are_understood) {
  EXPECT_EQ(parse_microseconds("1.5e3"), 1500000);
  EXPECT_EQ(parse_microseconds("25E-1"), 2500);
  EXPECT_EQ(parse_microseconds("1.7e+15"), 1700000000000000000);
}

TEST(TraceNumbers, text_that_is_not_a_time_is_empty) {
  for (const char* text : {"", "-", ".", "nan", "inf", "N/A", "1.2.3", "12us", "1e99", "1e"})
    EXPECT_FALSE(parse_microseconds(text)) << text;
  EXPECT_FALSE(parse_microseconds("99999999999999999999999999"));
  EXPECT_FALSE(parse_microseconds(std::string(100, '9')));
}

TEST(TraceNumbers, ids_are_whole_numbers_of_63_bits) {
  EXPECT_EQ(parse_id("42"), 42);
  EXPECT_EQ(parse_id("42.0"), 42);
  for (const char* text : {"", "x", "42.5", "stream 7", "99999999999999999999999999"})
    EXPECT_EQ(parse_id(text), no_id) << text;
}

}  // namespace
}  // namespace flopmeter
