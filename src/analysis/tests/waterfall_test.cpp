// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/diagnosis.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace flopmeter {
namespace {

/// Records that a broken clock, a strange loop or a damaged file might give.
class RandomEvidence {
 public:
  explicit RandomEvidence(std::uint64_t seed) : random_(seed) {}

  Evidence next() {
    Evidence evidence;
    if (chance(0.9)) evidence.peaks.set(Dtype::fp32, {amount(1e9, 1e15)});
    if (chance(0.7)) evidence.peaks.set(Dtype::bf16, {amount(1e9, 1e15)});
    const int count = static_cast<int>(amount(1, 40));
    for (int i = 0; i < count; ++i) evidence.steps.push_back(record());
    for (int i = 0; chance(0.5) && i < 3; ++i) evidence.profiles.push_back(profile());
    for (int i = 0; chance(0.5) && i < 5; ++i) {
      evidence.ranks.push_back(
          {.rank = i, .step_seconds = amount(1e-3, 10), .communication_seconds = amount(1e-6, 1)});
    }
    if (chance(0.3)) evidence.pipeline_stages = static_cast<int>(amount(1, 64));
    return evidence;
  }

 private:
  bool chance(double p) { return std::uniform_real_distribution<>{0, 1}(random_) < p; }
  /// Spread evenly over the orders of magnitude.
  double amount(double least, double most) {
    return std::exp(std::uniform_real_distribution<>{std::log(least), std::log(most)}(random_));
  }
  StepRecord record() {
    StepRecord r;
    r.step_seconds = {amount(1e-6, 1e3)};
    r.tag = chance(0.8) ? StepTag::train : static_cast<StepTag>(random_() % 6);
    for (auto& phase : r.phases) {
      if (chance(0.6)) phase = Seconds{amount(1e-7, 1e3) * (chance(0.02) ? -1 : 1)};
    }
    if (chance(0.8)) r.inter_step_seconds = Seconds{amount(1e-7, 1)};
    if (chance(0.9)) r.mfu = amount(1e-6, 1.5);
    const auto flops = static_cast<std::uint64_t>(amount(1, 1e18));
    if (chance(0.9)) r.hardware_flops = Flops{static_cast<WideInt>(flops)};
    if (chance(0.9)) r.model_flops = r.hardware_flops;
    if (chance(0.5)) r.recompute_flops = Flops{static_cast<WideInt>(flops / 4)};
    r.hardware_flops_by_dtype[static_cast<std::size_t>(chance(0.5) ? Dtype::fp32 : Dtype::bf16)] =
        flops;
    if (chance(0.5)) r.tokens = static_cast<std::int64_t>(amount(1, 1e7));
    if (chance(0.5)) r.padded_tokens = static_cast<std::int64_t>(amount(1, 1e7));
    if (chance(0.5)) r.data_wait_samples = static_cast<std::int64_t>(random_() % 20);
    if (chance(0.5) && r.data_wait_samples) r.data_wait_busy_samples = *r.data_wait_samples / 2;
    r.micro_batches = static_cast<std::int32_t>(random_() % 9);
    r.flops_source = static_cast<FlopsProvenance>(random_() % 7);
    return r;
  }
  OpProfile profile() {
    OpProfile s;
    s.on_device = chance(0.3);
    for (int i = static_cast<int>(amount(1, 20)); i > 0; --i) {
      s.rows.push_back({.name = "op",
                        .kind = static_cast<OpKind>(random_() % op_kind_count),
                        .calls = random_() % 10000,
                        .self = {amount(1e-6, 1)},
                        .phase = static_cast<Phase>(random_() % phase_count),
                        .across_devices = chance(0.1)});
    }
    for (int i = static_cast<int>(random_() % 4); i > 0; --i) {
      s.gaps.push_back({.phase = static_cast<Phase>(random_() % phase_count),
                        .recompute = chance(0.3),
                        .pause = chance(0.3),
                        .time = {amount(1e-6, 1)}});
    }
    return s;
  }

  std::mt19937_64 random_;
};

TEST(Waterfall, losses_sum_exactly_to_the_gap_over_random_records) {
  RandomEvidence random{20260731};
  int made = 0;
  for (int i = 0; i < 5000; ++i) {
    const Evidence evidence = random.next();
    const auto result = make_waterfall(evidence);
    if (!result) continue;
    ++made;
    const Waterfall& falls = *result;
    std::int64_t sum = 0;
    double points = 0;
    double moved = 1;
    ASSERT_EQ(falls.losses.size(), cause_count);
    for (const Loss& loss : falls.losses) {
      sum += loss.nanoseconds;
      points += loss.mfu_points;
      moved += std::abs(loss.mfu_points);
      // Only more work than the peak allows, in less time than it was seen in, leaves less than
      // nothing.
      const bool allowed = loss.nanoseconds >= 0 || loss.cause == Cause::unexplained;
      ASSERT_TRUE(allowed) << to_string(loss.cause);
    }
    ASSERT_EQ(sum, falls.total - falls.ideal);
    ASSERT_NEAR(points, 1 - falls.mfu, 1e-12 * moved);
  }
  EXPECT_GT(made, 3000);
}

TEST(Diagnosis, promises_no_more_than_the_peak_over_random_records) {
  RandomEvidence random{20261116};
  int found = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto diagnosis = diagnose(random.next());
    if (!diagnosis || (*diagnosis).waterfall.mfu > 1) continue;
    for (const Finding& finding : (*diagnosis).findings) {
      if (!finding.expected_mfu) continue;
      ++found;
      ASSERT_GT(*finding.expected_mfu, (*diagnosis).waterfall.mfu) << finding.rule;
      ASSERT_LE(*finding.expected_mfu, 1) << finding.rule;
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(Waterfall, rest_is_not_negative_where_no_more_was_done_than_the_peak_allows) {
  const auto falls = make_waterfall(example_window());
  ASSERT_TRUE(falls);
  EXPECT_GE((*falls).lost(Cause::unexplained), 0);
  EXPECT_LT((*falls).lost(Cause::unexplained), ((*falls).total - (*falls).ideal) / 10);
}

TEST(Waterfall, time_beyond_what_the_surveys_saw_stays_unexplained) {
  const auto plain = make_waterfall(example_window());
  const auto slower = make_waterfall(
      example_window([](StepRecord& record) { prolong(record, Phase::forward, 0.02); }));
  ASSERT_TRUE(plain && slower);
  EXPECT_EQ((*plain).lost(Cause::launch_overhead), (*slower).lost(Cause::launch_overhead));
  EXPECT_EQ((*slower).lost(Cause::unexplained) - (*plain).lost(Cause::unexplained),
            std::int64_t{60} * 20'000'000);
}

TEST(Profiles, count_an_operator_as_in_the_middle_and_all_together_as_in_the_middle) {
  const auto profile = [](double first, double second, double third) {
    OpProfile result;
    for (const auto& [name, seconds] : {std::pair{"a", first}, {"b", second}, {"c", third}})
      result.rows.push_back({.name = name, .calls = 1, .self = {seconds}});
    return result;
  };
  const auto first_row = [](const std::vector<OpProfile>& profiles) {
    return typical(profiles)[0].rows[0].self.value;
  };
  // One of them was disturbed, or each was, at another operator.
  EXPECT_DOUBLE_EQ(first_row({profile(9, 9, 9), profile(1, 1, 1), profile(1, 1, 1)}), 1);
  EXPECT_DOUBLE_EQ(first_row({profile(2, 1, 1), profile(1, 2, 1), profile(1, 1, 2)}), 4.0 / 3);
  EXPECT_DOUBLE_EQ(first_row({profile(2, 1, 1)}), 2);
}

TEST(Waterfall, way_between_operators_is_launching_and_a_pause_is_not) {
  const auto with_gap = [](bool pause) {
    return make_waterfall(
        example_window([](StepRecord& record) { prolong(record, Phase::forward, 0.02); },
                       [&](Evidence& window) {
                         window.profiles[0].gaps.push_back(
                             {.phase = Phase::forward, .pause = pause, .time = {0.02}});
                       }));
  };
  const auto way = with_gap(false);
  const auto pause = with_gap(true);
  ASSERT_TRUE(way && pause);
  EXPECT_EQ((*way).lost(Cause::launch_overhead) - (*pause).lost(Cause::launch_overhead),
            std::int64_t{60} * 20'000'000);
  EXPECT_TRUE((*way).missing.empty());
  ASSERT_EQ((*pause).missing.size(), 1U);
  EXPECT_NE((*pause).missing[0].find("20.0 ms"), std::string::npos) << (*pause).missing[0];
}

TEST(Waterfall, without_a_survey_says_what_it_cannot_tell) {
  const auto falls =
      make_waterfall(example_window({}, [](Evidence& window) { window.profiles.clear(); }));
  ASSERT_TRUE(falls);
  ASSERT_EQ((*falls).missing.size(), 1U);
  EXPECT_NE((*falls).missing[0].find("no profile"), std::string::npos);
  EXPECT_EQ((*falls).lost(Cause::launch_overhead), 0);
  EXPECT_GT((*falls).lost(Cause::unexplained), 0);
}

TEST(Waterfall, time_waited_for_data_is_found_to_the_nanosecond) {
  const auto falls = make_waterfall(
      example_window([](StepRecord& record) { prolong(record, Phase::data, 0.05); }));
  ASSERT_TRUE(falls);
  EXPECT_EQ((*falls).lost(Cause::data_loading), std::int64_t{60} * 51'000'000);
}

TEST(Waterfall, needs_an_mfu) {
  const auto falls = make_waterfall(example_window([](StepRecord& record) { record.mfu.reset(); }));
  ASSERT_FALSE(falls);
  EXPECT_NE(falls.error().message.find("--peak"), std::string::npos);
}

TEST(Waterfall, surveyed_and_warming_steps_are_left_out) {
  const auto plain = make_waterfall(example_window());
  const auto with = make_waterfall(example_window({}, [](Evidence& window) {
    StepRecord slow = window.steps.back();
    slow.tag = StepTag::profile;
    slow.step_seconds = {10};
    window.steps.push_back(slow);
  }));
  ASSERT_TRUE(plain && with);
  EXPECT_EQ((*plain).total, (*with).total);
}

TEST(Compare, changes_sum_to_the_difference_of_the_mfus) {
  const auto before = make_waterfall(
      example_window([](StepRecord& record) { prolong(record, Phase::data, 0.05); }));
  const auto after = make_waterfall(example_window());
  ASSERT_TRUE(before && after);
  double sum = 0;
  const auto changes = compare(*before, *after);
  for (const Change& change : changes) sum += change.mfu_change;
  EXPECT_NEAR(sum, (*after).mfu - (*before).mfu, 1e-12);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].cause, Cause::data_loading);
}

}  // namespace
}  // namespace flopmeter
