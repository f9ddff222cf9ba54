// SPDX-License-Identifier: Apache-2.0
#include "../src/sort_runs.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

namespace flopmeter {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

constexpr auto by_first = [](const auto& a, const auto& b) { return a.first < b.first; };

/// `runs` sorted parts of random keys that overlap; the second number is the place.
Pairs parts(std::size_t runs, int length, unsigned seed) {
  std::mt19937 random{seed};
  Pairs all;
  for (std::size_t run = 0; run < runs; ++run) {
    const auto begin = static_cast<std::ptrdiff_t>(all.size());
    for (int i = 0; i < length; ++i)
      all.emplace_back(static_cast<int>(random() % 50 + run * 20), static_cast<int>(all.size()));
    std::stable_sort(all.begin() + begin, all.end(), by_first);
  }
  return all;
}

TEST(SortRuns, sorts_like_stable_sort) {
  for (const std::size_t runs : {0U, 1U, 2U, 3U, 7U, 64U, 5000U}) {
    for (unsigned seed = 0; seed < 5; ++seed) {
      Pairs sorted = parts(runs, 9, seed);
      Pairs expected = sorted;
      std::stable_sort(expected.begin(), expected.end(), by_first);
      sort_runs(sorted.begin(), sorted.end(), by_first);
      EXPECT_EQ(sorted, expected) << runs << " parts, seed " << seed;
    }
  }
}

TEST(SortRuns, sorts_a_list_in_reverse_order) {
  std::vector<int> numbers(100);
  for (int i = 0; i < 100; ++i) numbers[static_cast<std::size_t>(i)] = 100 - i;
  sort_runs(numbers.begin(), numbers.end(), std::less{});
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

}  // namespace
}  // namespace flopmeter
