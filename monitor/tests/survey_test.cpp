// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/monitor/monitor.h>

#include <gtest/gtest.h>

#include <thread>

namespace flopmeter {
namespace {

/// Counts the same work each step, and surveys it when it is asked to.
class SurveyedSource final : public FlopSource {
 public:
  [[nodiscard]] std::string_view name() const override { return "test"; }
  [[nodiscard]] FlopTotals snapshot() const override { return totals_; }
  void enable(bool /*on*/) override {}
  [[nodiscard]] double nanoseconds_per_call() const override { return 0; }
  bool begin_survey() override { return open_ = !refuses; }
  std::optional<SurveyResult> end_survey() override {
    if (!std::exchange(open_, false)) return std::nullopt;
    SurveyResult survey;
    survey.rows.push_back({.name = "aten::mm", .kind = OpKind::priced, .calls = 3, .self = {0.25}});
    survey.calls = 3;
    return survey;
  }
  void work() {
    for (auto* totals : {&totals_.executed, &totals_.model})
      (*totals)[static_cast<std::size_t>(Dtype::bf16)][0] += 1'000'000;
  }
  bool refuses = false;

 private:
  FlopTotals totals_;
  bool open_ = false;
};

std::vector<Json> surveys_in(const TemporaryDirectory& directory) {
  const auto files = directory.names("survey_");
  return files.empty() ? std::vector<Json>{}
                       : parse_lines(read_file(directory.path() + "/" + files[0]));
}

/// Until the writing thread has stored that many: it keeps one, and steps here take no time.
void wait_for_surveys(const TemporaryDirectory& directory, std::size_t number) {
  for (int i = 0; i < 10'000 && surveys_in(directory).size() < number; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

/// Steps of a tenth of a second by a clock turned by hand; a surveyed one takes `slow` more.
void train(const TemporaryDirectory& directory,
           SurveyedSource& source,
           int steps,
           int frequency,
           double slow = 0) {
  HandClock::reset();
  Options options = quiet(directory);
  options.survey_frequency = frequency;
  Connections connections;
  connections.source = &source;
  connections.clock = HandClock::clock();
  connections.peaks.set(Dtype::bf16, {1e9});
  auto monitor = Monitor::start(options, std::move(connections));
  ASSERT_TRUE(monitor);
  std::size_t surveys = 0;
  for (int i = 0; i < steps; ++i) {
    (*monitor).begin_step();
    source.work();
    const bool surveyed = source.end_survey().has_value();
    if (surveyed) source.begin_survey();
    HandClock::advance(100'000'000 + (surveyed ? static_cast<std::int64_t>(1e8 * slow) : 0));
    (*monitor).end_step();
    if (surveyed) wait_for_surveys(directory, ++surveys);
  }
  (*monitor).finish();
}

std::vector<std::int64_t> surveyed_steps(const TemporaryDirectory& directory) {
  std::vector<std::int64_t> steps;
  for (const Json& record : read_records(directory)) {
    if (record["tag"] == "survey") steps.push_back(record["effective_step"]);
  }
  return steps;
}

TEST(Survey, one_early_one_when_the_run_has_settled_then_one_a_period) {
  const TemporaryDirectory directory;
  SurveyedSource source;
  train(directory, source, 300, 200, 0.3);
  EXPECT_EQ(surveyed_steps(directory), (std::vector<std::int64_t>{5, 50, 250}));
  EXPECT_EQ(directory.names("survey_").size(), 1U);
  const auto lines = surveys_in(directory);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["step"], 51);
  EXPECT_EQ(lines[1]["rows"][0]["name"], "aten::mm");
  EXPECT_EQ(lines[1]["rows"][0]["calls"], 3);
}

TEST(Survey, becomes_rarer_where_it_would_pass_the_budget) {
  const TemporaryDirectory directory;
  SurveyedSource source;
  train(directory, source, 300, 100, 2);  // 2 % of a hundred steps, of which 0.5 % are allowed
  EXPECT_EQ(surveyed_steps(directory), (std::vector<std::int64_t>{5, 50}));
}

TEST(Survey, is_kept_out_of_the_averages) {
  const TemporaryDirectory directory;
  SurveyedSource source;
  train(directory, source, 60, 1000, 5);
  const auto records = read_records(directory);
  EXPECT_NEAR(records.back()["mfu_run"].get<double>(), 0.01, 1e-12);
}

TEST(Survey, is_off_at_zero_and_where_the_source_refuses) {
  const TemporaryDirectory off;
  const TemporaryDirectory refused;
  SurveyedSource source;
  train(off, source, 60, 0);
  source.refuses = true;
  train(refused, source, 60, 1000);
  for (const auto* directory : {&off, &refused}) {
    EXPECT_TRUE(surveyed_steps(*directory).empty());
    EXPECT_TRUE(directory->names("survey_").empty());
  }
}

}  // namespace
}  // namespace flopmeter
