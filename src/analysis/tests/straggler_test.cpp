// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/straggler.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace flopmeter {
namespace {

using testing::HasSubstr;

constexpr int steps = 10;

/// `ranks` ranks over `windows` windows, in step or each at its own pace; work varies by a third
/// and speed by 3 %.
struct World {
  int ranks = 4;
  int windows = 6;
  bool in_step = false;
  bool waits = true;
  bool flops = true;
  int slow = -1;
  double slowness = 1.5;
  int slow_from = 0;  ///< window
  int heavy = -1;     ///< has twice the work
  unsigned seed = 1;
};

std::vector<RankWindows> make(const World& world) {
  std::mt19937_64 random{world.seed};
  std::uniform_real_distribution<double> work{0.7, 1.3};
  std::normal_distribution<double> noise{1, 0.03};
  std::vector<RankWindows> ranks(static_cast<std::size_t>(world.ranks));
  for (int w = 0; w < world.windows; ++w) {
    double longest = 0;
    for (int r = 0; r < world.ranks; ++r) {
      RankWindow window{.index = w, .steps = steps};
      const double flops = 1e15 * work(random) * (r == world.heavy ? 2 : 1);
      window.seconds = flops / 1e15 * std::max(0.5, noise(random)) *
                       (r == world.slow && w >= world.slow_from ? world.slowness : 1);
      if (world.flops) window.flops = flops;
      longest = std::max(longest, window.seconds);
      ranks[static_cast<std::size_t>(r)].rank = r;
      ranks[static_cast<std::size_t>(r)].windows.push_back(window);
    }
    for (RankWindows& rank : ranks) {
      RankWindow& window = rank.windows.back();
      const double wait = world.in_step ? longest - window.seconds : 0;
      window.seconds += wait;
      if (world.waits) window.waited = window.communicated = wait;
    }
  }
  return ranks;
}

std::vector<int> found(const World& world, Verdict verdict) {
  std::vector<int> ranks;
  for (const RankScore& score : find_stragglers(make(world)).ranks) {
    if (score.verdict == verdict) ranks.push_back(score.rank);
  }
  return ranks;
}

TEST(Straggler, names_the_slow_rank_in_worlds_of_any_size) {
  for (const int ranks : {2, 3, 4, 8, 64}) {
    for (const bool in_step : {false, true}) {
      EXPECT_EQ(found({.ranks = ranks, .in_step = in_step, .slow = ranks - 1}, Verdict::slow),
                std::vector{ranks - 1})
          << ranks << (in_step ? " in step" : "");
    }
  }
}

TEST(Straggler, is_named_after_two_windows) {
  const std::vector<int> none;
  const std::vector<int> three{3};
  EXPECT_EQ(found({.windows = 5, .slow = 3, .slow_from = 4}, Verdict::slow), none);
  EXPECT_EQ(found({.windows = 6, .slow = 3, .slow_from = 4}, Verdict::slow), three);
}

TEST(Straggler, gives_no_false_alarm_in_200_clean_windows_of_unequal_work) {
  for (const bool in_step : {false, true}) {
    for (const int ranks : {2, 4, 16}) {
      const auto all = make({.ranks = ranks, .windows = 200, .in_step = in_step});
      for (std::size_t end = 1; end <= 200; ++end) {
        std::vector<RankWindows> so_far = all;
        for (RankWindows& rank : so_far) rank.windows.resize(end);
        for (const RankScore& score : find_stragglers(so_far).ranks)
          ASSERT_NE(score.verdict, Verdict::slow) << "rank " << score.rank << " window " << end;
      }
    }
  }
}

TEST(Straggler, a_rank_with_more_work_is_late_and_not_slow) {
  EXPECT_EQ(found({.ranks = 8, .in_step = true, .heavy = 5}, Verdict::slow), std::vector<int>{});
  EXPECT_EQ(found({.ranks = 8, .in_step = true, .heavy = 5}, Verdict::late), std::vector{5});
}

TEST(Straggler, without_flops_it_reports_the_late_rank_and_the_missing_signal) {
  const World world{.ranks = 8, .in_step = true, .flops = false, .slow = 2, .slowness = 3};
  EXPECT_EQ(found(world, Verdict::late), std::vector{2});
  const auto report = find_stragglers(make(world));
  ASSERT_EQ(report.missing_signals.size(), 1U);
  EXPECT_THAT(report.missing_signals[0], HasSubstr("model_flops"));
}

TEST(Straggler, abstains_if_waits_are_unknown_and_steps_are_equal) {
  const World world{.ranks = 8, .in_step = true, .waits = false, .slow = 2};
  EXPECT_EQ(found(world, Verdict::slow), std::vector<int>{});
  EXPECT_THAT(find_stragglers(make(world)).missing_signals.back(), HasSubstr("cannot be compared"));
}

TEST(Straggler, stages_of_a_pipeline_are_compared_only_with_equal_stages) {
  auto ranks = make({.ranks = 8, .slow = 5});
  for (RankWindows& rank : ranks) {
    rank.role = rank.rank / 4;
    for (RankWindow& window : rank.windows) *window.flops *= rank.role == 1 ? 3 : 1;
  }
  const auto report = find_stragglers(ranks);
  for (const RankScore& score : report.ranks)
    EXPECT_EQ(score.verdict, score.rank == 5 ? Verdict::slow : Verdict::normal) << score.rank;
  EXPECT_TRUE(report.missing_signals.empty());

  for (RankWindows& rank : ranks) rank.role = rank.rank;  // who holds what is not known
  const auto unknown = find_stragglers(ranks);
  for (const RankScore& score : unknown.ranks) EXPECT_EQ(score.verdict, Verdict::normal);
  EXPECT_THAT(unknown.missing_signals[0], HasSubstr("the same layers"));
}

TEST(Straggler, one_rank_has_nothing_to_compare_with) {
  const auto report = find_stragglers(make({.ranks = 1}));
  EXPECT_EQ(report.ranks[0].verdict, Verdict::normal);
  EXPECT_THAT(report.missing_signals[0], HasSubstr("second rank"));
}

TEST(Straggler, history_distinguishes_a_rank_that_became_slow_from_one_that_always_was) {
  const auto became = find_stragglers(make({.windows = 12, .slow = 1, .slow_from = 9}));
  EXPECT_NEAR(*became.ranks[1].historical, 1 / 1.5, 0.1);
  const auto always = find_stragglers(make({.windows = 12, .slow = 1}));
  EXPECT_NEAR(*always.ranks[1].historical, 1, 0.1);
  EXPECT_NEAR(*always.ranks[1].relative, 1 / 1.5, 0.1);
}

}  // namespace
}  // namespace flopmeter
