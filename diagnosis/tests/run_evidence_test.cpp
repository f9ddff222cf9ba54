// SPDX-License-Identifier: Apache-2.0
#include "../../runs/tests/simulated_run.h"
#include "../../tests/support/files.h"

#include <flopmeter/diagnosis/run_evidence.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

TEST(RunEvidence, all_ranks_of_a_large_run_are_compared) {
  const TemporaryDirectory directory;
  write_run({.ranks = 300, .steps = 40, .missing = {7}, .slow_rank = 101}, directory.path());
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  const Evidence evidence = read_evidence(*run, 0);
  EXPECT_EQ(evidence.ranks.size(), 299U);
  for (const RankFigures& rank : evidence.ranks)
    EXPECT_EQ(rank.verdict, rank.rank == 101 ? Verdict::slow : Verdict::normal) << rank.rank;
}

}  // namespace
}  // namespace flopmeter
