// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/diagnosis.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace flopmeter {
namespace {

/// Records that a broken clock, an unusual loop, or a damaged file might give.
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
    if (chance(0.3)) {
      evidence.device = DeviceTime{.busy = amount(1e-6, 1e3),
                                   .optimizer = amount(1e-6, 1),
                                   .idle = {{causes::data_loading, amount(1e-6, 1)},
                                            {causes::synchronization, amount(1e-6, 1)}}};
    }
    if (chance(0.3)) {
      for (StepRecord& record : evidence.steps) {
        record.run_queue_seconds = Seconds{amount(1e-6, 10)};
        record.garbage_collection_seconds = Seconds{amount(1e-6, 10)};
        record.interpreter_lock_seconds = Seconds{amount(1e-6, 10)};
      }
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
    if (chance(0.9)) r.mfu = amount(1e-6, chance(0.1) ? 1.5 : 0.6);
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
    s.device_times = s.on_device && chance(0.5);
    for (int i = static_cast<int>(amount(1, 20)); i > 0; --i) {
      s.rows.push_back({.name = "op",
                        .kind = static_cast<OpKind>(random_() % op_kind_count),
                        .calls = random_() % 10000,
                        .self = {amount(1e-6, 1)},
                        .phase = static_cast<Phase>(random_() % phase_count),
                        .across_devices = chance(0.1)});
    }
    for (int i = static_cast<int>(random_() % 4); i > 0; --i) {
      s.idle.push_back({.phase = static_cast<Phase>(random_() % phase_count),
                        .recompute = chance(0.3),
                        .stall = chance(0.3),
                        .time = {amount(1e-6, 1)}});
    }
    return s;
  }

  std::mt19937_64 random_;
};

TEST(TimeBudget, causes_sum_exactly_to_the_time_and_useful_is_mfu_over_random_records) {
  RandomEvidence random{20260731};
  int made = 0;
  for (int i = 0; i < 5000; ++i) {
    const Evidence evidence = random.next();
    const StepTotals totals = summarize(evidence);
    const TimeBudget budget = make_budget(evidence);
    const auto mfu = totals.mfu();
    if (totals.steps == 0 || mfu.value_or(0) > 1) {
      EXPECT_TRUE(budget.lines.empty());
      continue;
    }
    ++made;
    std::int64_t sum = 0;
    for (const BudgetLine& line : budget.lines) {
      ASSERT_GT(line.nanoseconds, 0) << line.cause.id;
      sum += line.nanoseconds;
    }
    ASSERT_EQ(sum, budget.total);
    ASSERT_NEAR(
        budget.share(causes::useful), mfu.value_or(0), 1 / static_cast<double>(budget.total));
  }
  EXPECT_GT(made, 3000);
}

TEST(Diagnosis, what_if_never_exceeds_the_peak_over_random_records) {
  RandomEvidence random{20261116};
  int found = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto diagnosis = diagnose(random.next());
    if (!diagnosis || (*diagnosis).mfu().value_or(0) > 1) continue;
    std::vector<Finding> findings = (*diagnosis).findings;
    if ((*diagnosis).together) findings.push_back(*(*diagnosis).together);
    for (const Finding& finding : findings) {
      if (!finding.share) continue;
      ++found;
      ASSERT_GE(*finding.share, 0.01) << finding.rule;
      ASSERT_LE(*finding.share, 1) << finding.rule;
      ASSERT_GT(finding.speedup.value_or(2), 1) << finding.rule;
      ASSERT_LE(finding.mfu_then.value_or(0), 1 + 1e-9) << finding.rule;
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(TimeBudget, little_is_unexplained_in_a_healthy_run) {
  const TimeBudget budget = make_budget(example_window());
  EXPECT_LT(budget.share(causes::unexplained), 0.05);
  EXPECT_NEAR(budget.share(causes::useful), 0.5, 1e-9);
}

TEST(TimeBudget, time_beyond_the_profiles_stays_unexplained) {
  const TimeBudget plain = make_budget(example_window());
  const TimeBudget slower = make_budget(
      example_window([](StepRecord& record) { prolong(record, Phase::forward, 0.02); }));
  EXPECT_NEAR(
      plain.seconds(causes::launch_overhead), slower.seconds(causes::launch_overhead), 1e-6);
  EXPECT_NEAR(
      slower.seconds(causes::unexplained) - plain.seconds(causes::unexplained), 60 * 0.02, 1e-6);
}

TEST(Profiles, take_the_median_of_each_operator_and_of_all_together) {
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

TEST(TimeBudget, time_between_operators_is_launching_and_a_stall_is_not) {
  const auto with_idle_time = [](bool stall) {
    return make_budget(
        example_window([](StepRecord& record) { prolong(record, Phase::forward, 0.02); },
                       [&](Evidence& window) {
                         window.profiles[0].idle.push_back(
                             {.phase = Phase::forward, .stall = stall, .time = {0.02}});
                       }));
  };
  const TimeBudget between = with_idle_time(false);
  const TimeBudget stall = with_idle_time(true);
  EXPECT_NEAR(
      between.seconds(causes::launch_overhead) - stall.seconds(causes::launch_overhead), 1.2, 1e-6);
  EXPECT_TRUE(between.missing_signals.empty());
  ASSERT_EQ(stall.missing_signals.size(), 1U);
  EXPECT_NE(stall.missing_signals[0].find("20.0 ms"), std::string::npos)
      << stall.missing_signals[0];
}

TEST(TimeBudget, names_what_a_missing_profile_hides) {
  const TimeBudget budget =
      make_budget(example_window({}, [](Evidence& window) { window.profiles.clear(); }));
  ASSERT_EQ(budget.missing_signals.size(), 1U);
  EXPECT_NE(budget.missing_signals[0].find("no operator profile"), std::string::npos);
  EXPECT_EQ(budget.nanoseconds(causes::launch_overhead), 0);
  EXPECT_GT(budget.nanoseconds(causes::unexplained), 0);
}

TEST(TimeBudget, data_wait_is_exact) {
  const TimeBudget budget =
      make_budget(example_window([](StepRecord& record) { prolong(record, Phase::data, 0.05); }));
  EXPECT_NEAR(budget.seconds(causes::data_loading), 60 * 0.051, 1e-8);
}

TEST(TimeBudget, does_not_depend_on_the_order_of_steps) {
  Evidence evidence = example_window([](StepRecord& record) {
    if (record.step % 3 == 0) prolong(record, Phase::data, 0.05);
  });
  const TimeBudget before = make_budget(evidence);
  std::reverse(evidence.steps.begin(), evidence.steps.end());
  const TimeBudget after = make_budget(evidence);
  ASSERT_EQ(before.lines.size(), after.lines.size());
  for (const BudgetLine& line : before.lines)
    EXPECT_NEAR(before.share(line.cause), after.share(line.cause), 1e-9) << line.cause.id;
}

TEST(TimeBudget, useful_and_matmul_inefficiency_are_one_cause_without_an_mfu) {
  const TimeBudget budget =
      make_budget(example_window([](StepRecord& record) { record.mfu.reset(); }));
  EXPECT_EQ(budget.nanoseconds(causes::useful), 0);
  EXPECT_EQ(budget.nanoseconds(causes::matmul_inefficiency), 0);
  EXPECT_NEAR(budget.seconds(causes::compute), 60 * 0.059, 1e-6);
}

TEST(TimeBudget, is_empty_above_the_peak_and_the_finding_states_why) {
  const auto diagnosis = diagnose(example_window([](StepRecord& record) { record.mfu = 1.2; }));
  ASSERT_TRUE(diagnosis);
  EXPECT_TRUE((*diagnosis).budget.lines.empty());
  ASSERT_EQ((*diagnosis).findings.size(), 1U);
  EXPECT_EQ((*diagnosis).findings[0].rule, "mfu_above_100");
}

TEST(TimeBudget, profiled_steps_are_excluded) {
  const TimeBudget plain = make_budget(example_window());
  const TimeBudget with = make_budget(example_window({}, [](Evidence& window) {
    StepRecord slow = window.steps.back();
    slow.tag = StepTag::profile;
    slow.step_seconds = {10};
    window.steps.push_back(slow);
  }));
  EXPECT_EQ(plain.total, with.total);
}

TEST(TimeBudget, device_time_replaces_the_phases) {
  const TimeBudget budget = make_budget(example_window({}, [](Evidence& window) {
    window.device =
        DeviceTime{.busy = 0.08,
                   .optimizer = 0.004,
                   .idle = {{causes::synchronization, 0.01}, {causes::cpu_bound, 0.005}}};
  }));
  EXPECT_NEAR(budget.seconds(causes::synchronization), 60 * 0.01, 1e-6);
  EXPECT_NEAR(budget.seconds(causes::cpu_bound), 60 * 0.005, 1e-6);
  EXPECT_NEAR(budget.seconds(causes::optimizer), 60 * 0.004, 1e-6);
  EXPECT_EQ(budget.nanoseconds(causes::loop), 0);
}

TEST(TimeBudget, a_rule_can_claim_time_for_its_own_cause) {
  const TimeBudget budget = make_budget(
      example_window([](StepRecord& record) { record.run_queue_seconds = Seconds{0.01}; }));
  EXPECT_NEAR(budget.seconds(causes::busy_machine), 60 * 0.01, 1e-6);
  EXPECT_NEAR(budget.share(causes::useful), 0.5, 1e-9);
}

TEST(TimeBudget, garbage_collection_is_not_loop_code) {
  const TimeBudget budget = make_budget(example_window([](StepRecord& record) {
    prolong(record, Phase::other, 0.1);
    record.garbage_collection_seconds = Seconds{0.1};
  }));
  const TimeBudget without = make_budget(example_window());
  EXPECT_NEAR(static_cast<double>(budget.nanoseconds({"garbage_collection", ""})), 60 * 0.1e9, 1e6);
  EXPECT_NEAR(budget.seconds(causes::loop), without.seconds(causes::loop), 0.01);
}

TEST(Diagnosis, all_fixes_together_are_summed_over_different_causes) {
  const auto diagnosis = diagnose(example_window([](StepRecord& record) {
    prolong(record, Phase::communication, 0.02);
    prolong(record, Phase::data, 0.05);
  }));
  ASSERT_TRUE(diagnosis);
  const auto& [first, second] = std::pair{(*diagnosis).findings.at(0), (*diagnosis).findings.at(1)};
  ASSERT_TRUE((*diagnosis).together);
  EXPECT_NEAR(*(*diagnosis).together->seconds, *first.seconds + *second.seconds, 1e-9);
  EXPECT_NEAR(*(*diagnosis).together->mfu_then, 0.5, 0.01);
}

TEST(Diagnosis, a_faster_dtype_is_a_what_if_of_another_peak) {
  const auto diagnosis = diagnose(example_window([](StepRecord& record) {
    std::swap(record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)],
              record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::fp32)]);
    prolong(record, Phase::backward, 0.05);
    *record.mfu *= 2;
  }));
  ASSERT_TRUE(diagnosis);
  EXPECT_EQ((*diagnosis).peak, "fp32");
  const auto& findings = (*diagnosis).findings;
  const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "no_mixed_precision";
  });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->peak, "bf16");
  EXPECT_GT(*found->speedup, 1.2);
}

TEST(Compare, changes_sum_to_the_difference_of_the_step_times) {
  const auto before =
      diagnose(example_window([](StepRecord& record) { prolong(record, Phase::data, 0.05); }));
  const auto after = diagnose(example_window());
  ASSERT_TRUE(before && after);
  double sum = 0;
  const auto changes = compare(*before, *after);
  for (const Change& change : changes) sum += change.difference();
  EXPECT_NEAR(sum, -0.05, 1e-9);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].cause, causes::data_loading);
}

TEST(Finding, is_about_the_cause_of_its_rule_or_the_one_that_it_saves_most_of) {
  Finding finding;
  finding.rule = "padding";
  finding.savings = {{"busy_machine", 3}, {"padding", 1}};
  EXPECT_EQ(cause_of(finding), "padding");
  finding.rule = "no_mixed_precision";
  EXPECT_EQ(cause_of(finding), "busy_machine");
  finding.savings.clear();
  EXPECT_EQ(cause_of(finding), "");
}

}  // namespace
}  // namespace flopmeter
