// SPDX-License-Identifier: Apache-2.0
//
// Every rule of analysis/rules against its own two examples.
#include "../src/example_window.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/rule.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace flopmeter {
namespace {

std::optional<Finding> found(const Rule& rule, const Evidence& window) {
  const auto diagnosis = diagnose(window);
  if (!diagnosis) return std::nullopt;
  const auto& findings = (*diagnosis).findings;
  const auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.rule == rule.name;
  });
  return at == findings.end() ? std::nullopt : std::optional{*at};
}

class EveryRule : public testing::TestWithParam<const Rule*> {};

TEST_P(EveryRule, fires_in_its_example_with_evidence_and_a_recommendation) {
  const Evidence window = GetParam()->fires();
  ASSERT_TRUE(diagnose(window));
  const auto finding = found(*GetParam(), window);
  ASSERT_TRUE(finding);
  EXPECT_FALSE(finding->summary.empty());
  EXPECT_FALSE(finding->recommendation.empty());
  EXPECT_NE(finding->evidence.find_first_of("0123456789"), std::string::npos) << finding->evidence;
  ASSERT_TRUE(finding->confidence);
  EXPECT_GT(*finding->confidence, 0);
  EXPECT_LE(*finding->confidence, 1);
  ASSERT_EQ(finding->share.has_value(), finding->speedup.has_value());
  if (finding->share) {
    EXPECT_GT(*finding->share, 0.01);
    EXPECT_GT(*finding->speedup, 1);
    EXPECT_LT(*finding->mfu_then, 1);
    EXPECT_FALSE(finding->peak.empty());
  }
}

TEST_P(EveryRule, does_not_fire_in_its_negative_example) {
  const Evidence window = GetParam()->negative();
  ASSERT_TRUE(diagnose(window));
  EXPECT_FALSE(found(*GetParam(), window));
}

INSTANTIATE_TEST_SUITE_P(Rules,
                         EveryRule,
                         testing::ValuesIn(rules().begin(), rules().end()),
                         [](const auto& rule) { return std::string{rule.param->name}; });

TEST(Rules, find_nothing_in_a_healthy_run) {
  const auto diagnosis = diagnose(example_window());
  ASSERT_TRUE(diagnosis);
  for (const Finding& finding : (*diagnosis).findings) ADD_FAILURE() << finding.summary;
}

TEST(Rules, largest_finding_comes_first) {
  const auto diagnosis = diagnose(example_window([](StepRecord& record) {
    prolong(record, Phase::communication, 0.02);
    prolong(record, Phase::data, 0.05);
  }));
  ASSERT_TRUE(diagnosis);
  ASSERT_EQ((*diagnosis).findings.size(), 2U);
  EXPECT_EQ((*diagnosis).findings[0].rule, "data_loading");
  EXPECT_EQ((*diagnosis).findings[1].rule, "communication");
}

TEST(Rules, mfu_then_is_that_of_the_run_without_the_fault) {
  const auto healthy = diagnose(example_window());
  const auto injected =
      diagnose(example_window([](StepRecord& record) { prolong(record, Phase::data, 0.05); }));
  ASSERT_TRUE(healthy && injected);
  ASSERT_EQ((*injected).findings.size(), 1U);
  EXPECT_NEAR(*(*injected).findings[0].mfu_then, *(*healthy).mfu(), 0.01);
}

}  // namespace
}  // namespace flopmeter
