// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/terminal_text.h>

#include <gtest/gtest.h>

#include <array>

namespace flopmeter {
namespace {

TEST(TerminalText, percents_sum_to_100_as_printed) {
  const std::array<double, 3> thirds = {1 / 3., 1 / 3., 1 / 3.};
  EXPECT_EQ(percents(thirds), (std::vector<std::string>{"33.4 %", "33.3 %", "33.3 %"}));
  const std::array<double, 3> mfu = {0.66664, 0.33326, 0.0001};
  EXPECT_EQ(percents(mfu), (std::vector<std::string>{"66.7 %", "33.3 %", "0.0 %"}));
  const std::array<double, 3> kept = {0.5006, 0.1634, 0.336};
  constexpr std::array<std::size_t, 1> second = {1};
  EXPECT_EQ(percents(kept, second), (std::vector<std::string>{"50.1 %", "16.3 %", "33.6 %"}));
  const std::array<double, 4> named = {0.68152, 0.25952, 0.04996, 0.009};
  constexpr std::array<std::size_t, 2> first_two = {0, 1};
  EXPECT_EQ(percents(named, first_two),
            (std::vector<std::string>{"68.2 %", "26.0 %", "4.9 %", "0.9 %"}));
  const std::array<double, 2> both = {0.5005, 0.4995};
  EXPECT_EQ(percents(both, first_two), (std::vector<std::string>{"50.0 %", "50.0 %"}));
  EXPECT_TRUE(percents({}).empty());
}

}  // namespace
}  // namespace flopmeter
