// SPDX-License-Identifier: Apache-2.0
#include "../../../tests/support/files.h"
#include "../src/example_window.h"
#include "simulated_run.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/run_evidence.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace flopmeter {
namespace {

TEST(RunEvidence, all_ranks_of_a_large_run_are_compared) {
  const TemporaryDirectory directory;
  write_run({.ranks = 300, .steps = 40, .missing = {7}, .slow_rank = 101}, directory.path());
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  const Evidence evidence = read_evidence(*run);
  EXPECT_EQ(evidence.ranks.size(), 299U);
  for (const RankFigures& rank : evidence.ranks)
    EXPECT_EQ(rank.verdict, rank.rank == 101 ? Verdict::slow : Verdict::normal) << rank.rank;
}

TEST(RunEvidence, a_slow_rank_costs_only_those_that_wait_for_it) {
  const TemporaryDirectory directory;
  write_run({.ranks = 8, .steps = 40, .missing = {}, .slow_rank = 5}, directory.path());
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  const auto lost = [&](int rank) {
    const auto diagnosis = diagnose(read_evidence(*run, {.rank = rank}));
    EXPECT_TRUE(diagnosis) << diagnosis.error().message;
    for (const Finding& finding : (*diagnosis).findings) {
      if (finding.rule == "straggler" && finding.rank == 5) return finding.share.value_or(-1);
    }
    return -1.0;
  };
  // These ranks have no collectives: the slow one costs itself a third, and the run an eighth of
  // it.
  EXPECT_GT(lost(5), 0.05);
  EXPECT_GT(lost(0), 0.05 / 8);
  EXPECT_LT(lost(0), lost(5) / 3);
}

TEST(WaitForLast, is_counted_step_by_step_if_the_steps_are_known) {
  std::vector<RankFigures> ranks{{.rank = 3, .step_seconds = 0.11, .communication_seconds = 0.01},
                                 {.rank = 4, .step_seconds = 0.11, .communication_seconds = 0.01}};
  EXPECT_DOUBLE_EQ(wait_for_last(ranks, 3), 0);
  ranks[0].work_seconds = {0.10, 0.12, 0.08};
  ranks[1].work_seconds = {0.10, 0.09, 0.11};  // rank 3 waits for it once, by 30 ms
  EXPECT_DOUBLE_EQ(wait_for_last(ranks, 3), 0.01);
  EXPECT_DOUBLE_EQ(wait_for_last(ranks, 7), 0);
}

TEST(Straggler, is_late_by_a_lower_rate_and_not_by_more_work) {
  const auto named = [](double rate) {
    const auto diagnosis = diagnose(example_window({}, [&](Evidence& window) {
      window.ranks = {{.rank = 0, .step_seconds = 0.12, .communication_seconds = 0.02},
                      {.rank = 1, .step_seconds = 0.12, .verdict = Verdict::late}};
      window.ranks[0].flops_per_second = 1e12;
      window.ranks[1].flops_per_second = rate;
    }));
    EXPECT_TRUE(diagnosis);
    const std::vector<Finding>& findings = (*diagnosis).findings;
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.rule == "straggler";
    });
  };
  EXPECT_TRUE(named(0.8e12));
  EXPECT_FALSE(named(1e12));
}

TEST(Straggler, costs_what_the_last_of_the_others_leaves_of_its_lag) {
  // Rank 1 takes 40 ms more; without that, rank 0 would be last by 10 ms in every second step, and
  // rank 1 in the others.
  const auto diagnosis = diagnose(example_window({}, [](Evidence& window) {
    for (StepRecord& record : window.steps) prolong(record, Phase::communication, 0.05);
    window.ranks = {{.rank = 0, .step_seconds = 0.15, .communication_seconds = 0.05},
                    {.rank = 1, .step_seconds = 0.15, .communication_seconds = 0.01}};
    window.ranks[1].verdict = Verdict::slow;
    window.ranks[0].work_seconds = {0.105, 0.095, 0.105, 0.095};
    window.ranks[1].work_seconds = {0.135, 0.145, 0.135, 0.145};
  }));
  ASSERT_TRUE(diagnosis);
  const std::vector<Finding>& findings = (*diagnosis).findings;
  const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "straggler";
  });
  ASSERT_NE(found, findings.end());
  // Steps of 135 and 145 ms would take 105: 35 ms are gained, not 40.
  EXPECT_NEAR(*found->seconds / static_cast<double>((*diagnosis).totals.steps), 0.035, 1e-6);
}

}  // namespace
}  // namespace flopmeter
