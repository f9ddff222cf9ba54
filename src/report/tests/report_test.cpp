// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/report/report.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace flopmeter {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class Report : public RunFiles {
 protected:
  [[nodiscard]] Json report() const {
    auto text = report_json(directory_.path(), {"0", 0});
    EXPECT_TRUE(text.has_value());
    return text ? Json::parse(*text) : Json{};
  }
};

TEST_F(Report, a_spike_is_on_the_curve_and_averages_are_by_time) {
  write(1, 40);
  const Json page = report();
  const Json& curves = page["timeline"]["curves"];
  ASSERT_EQ(curves[0]["field"], "mfu");
  EXPECT_NEAR(curves[0]["low"][29].get<double>(), 0.1, 1e-6);
  EXPECT_NEAR(page["mfu"].get<double>(), 40 * 0.2 / (39 * 0.5 + 2), 1e-12);
  EXPECT_EQ(page["headline"]["mfu"], page["mfu"]);
  EXPECT_EQ(page["headline"]["train_steps"], 40);
}

TEST_F(Report, phases_over_time_sum_to_the_mean_step) {
  StepRecord saving = sample_step(41);
  saving.phases[static_cast<std::size_t>(Phase::checkpoint)] = Seconds{3};
  saving.step_seconds.value += 3;
  write(1, 40);
  append_file(stream_of(directory_, 0), line_of(saving));
  write(1, 41, 1);  // this rank does not save
  const Json page = report();
  std::vector<double> sums(41);
  std::vector<double> steps;
  for (const Json& curve : page["timeline"]["curves"]) {
    const auto mean = curve["mean"].get<std::vector<double>>();
    if (curve["field"] == "step_seconds") steps = mean;
    if (!curve["field"].get<std::string>().starts_with("phases.")) continue;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += mean[i];
  }
  ASSERT_EQ(steps.size(), sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], steps[i], 1e-6);
}

TEST_F(Report, a_restart_replaces_the_steps_it_did_again) {
  write(1, 20);
  write(11, 30, 0, "20231115_000000");
  const Json page = report();
  EXPECT_EQ(page["headline"]["train_steps"], 30);
  EXPECT_EQ(page["timeline"]["step"].size(), 30U);
}

TEST_F(Report, names_the_slow_rank) {
  for (int rank = 0; rank < 4; ++rank) write(1, 20, rank);
  const Json page = report();
  ASSERT_EQ(page["ranks"]["count"], 4);
  for (const Json& row : page["ranks"]["rows"]) EXPECT_EQ(row["slow"], row["rank"] == 3);
}

TEST_F(Report, the_slower_of_two_ranks_is_above_the_median) {
  for (const int rank : {2, 3}) write(1, 20, rank);
  const Json ranks = report()["ranks"];
  EXPECT_NEAR(ranks["median_seconds"].get<double>(), 0.4, 1e-9);
}

TEST_F(Report, a_finding_that_holds_to_the_end_is_marked_to_the_end) {
  write(1, 27);
  const Json page = report();
  ASSERT_FALSE(page["marks"].empty());
  EXPECT_EQ(page["marks"][0]["first_step"], 1);
  EXPECT_EQ(page["marks"][0]["last_step"], 27);
}

TEST_F(Report, unknown_values_are_null) {
  StepRecord record;
  record.step_seconds = {0.1};
  append_file(stream_of(directory_, 0), line_of(record));
  const Json page = report();
  EXPECT_TRUE(page["headline"]["mfu"].is_null());
  EXPECT_TRUE(page["mfu"].is_null());
  EXPECT_THAT(page["headline"]["no_mfu_reason"].get<std::string>(), HasSubstr("peak"));
  EXPECT_TRUE(page["phases"].empty());
}

TEST_F(Report, a_run_without_a_step_is_a_page_too) {
  append_file(directory_.path() + "/run.json", "{\"schema\":\"flopmeter.run/2\"}");
  EXPECT_EQ(report()["headline"]["train_steps"], 0);
}

TEST(ReportPage, data_cannot_end_its_script) {
  const std::string page = report_page(R"({"a":"</script><!--<script>&amp;"})");
  const char* inert = R"({"a":"\u003c/script\u003e\u003c!--\u003cscript\u003e\u0026amp;"})";
  EXPECT_NE(page.find(inert), std::string::npos);
}

TEST(ReportPage, refers_to_nothing_outside) {
  const std::string page = report_page("{}");
  const auto has = [&](const char* text) { return page.find(text) != std::string::npos; };
  EXPECT_FALSE(has("sourceMappingURL"));
  for (const char* mark : {"{{policy}}", "{{style}}", "{{data}}", "{{scripts}}"})
    EXPECT_FALSE(has(mark));
  EXPECT_TRUE(has("default-src 'none'"));
  EXPECT_TRUE(has("Permission is hereby granted"));
  EXPECT_GT(page.size(), 100'000U);
}

TEST(ReportJson, a_path_that_is_not_a_run_directory_is_an_error) {
  EXPECT_FALSE(report_json("/nowhere/at/all", {}));
}

}  // namespace
}  // namespace flopmeter
