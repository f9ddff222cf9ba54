// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/monitor/monitor.h>

#include <gtest/gtest.h>

#include <thread>

namespace flopmeter {
namespace {

/// Counts the same work each step, and profiles it on request.
class ProfilingCounter final : public FlopCounter {
 public:
  [[nodiscard]] std::string_view name() const override { return "test"; }
  [[nodiscard]] FlopTotals snapshot() const override { return totals_; }
  void enable(bool /*on*/) override {}
  [[nodiscard]] double nanoseconds_per_call() const override { return 0; }
  bool begin_profile() override { return open_ = !refuses; }
  std::optional<OpProfile> end_profile() override {
    if (!std::exchange(open_, false)) return std::nullopt;
    OpProfile profile;
    profile.rows.push_back(
        {.name = "aten::mm", .kind = OpKind::compute, .calls = 3, .self = {0.25}});
    profile.calls = 3;
    return profile;
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

std::vector<Json> profiles_in(const TemporaryDirectory& directory) {
  const auto files = directory.names("op_profile_");
  return files.empty() ? std::vector<Json>{}
                       : parse_lines(read_file(directory.path() + "/" + files[0]));
}

/// Until the writing thread has stored that many: it keeps one, and steps here take no time.
void wait_for_profiles(const TemporaryDirectory& directory, std::size_t number) {
  for (int i = 0; i < 10'000 && profiles_in(directory).size() < number; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

/// Steps of a tenth of a second of a manual clock; a profiled one takes `slow` more.
void train(const TemporaryDirectory& directory,
           ProfilingCounter& source,
           int steps,
           int frequency,
           double slow = 0) {
  Options options = without_console(directory);
  options.profile_frequency = frequency;
  Connections connections = on_hand_clock();
  connections.source = &source;
  connections.peaks.set(Dtype::bf16, {1e9});
  auto monitor = Monitor::start(options, std::move(connections));
  ASSERT_TRUE(monitor);
  std::size_t profiles = 0;
  for (int i = 0; i < steps; ++i) {
    (*monitor).begin_step();
    source.work();
    const bool profiled = source.end_profile().has_value();
    if (profiled) source.begin_profile();
    HandClock::advance(100'000'000 + (profiled ? static_cast<std::int64_t>(1e8 * slow) : 0));
    (*monitor).end_step();
    if (profiled) wait_for_profiles(directory, ++profiles);
  }
  (*monitor).finish();
}

std::vector<std::int64_t> profiled_steps(const TemporaryDirectory& directory) {
  std::vector<std::int64_t> steps;
  for (const Json& record : read_records(directory)) {
    if (record["tag"] == "profile") steps.push_back(record["process_step"]);
  }
  return steps;
}

TEST(OpProfiler, one_early_one_when_the_run_has_settled_then_one_per_period) {
  const TemporaryDirectory directory;
  ProfilingCounter source;
  train(directory, source, 300, 200, 0.3);
  EXPECT_EQ(profiled_steps(directory), (std::vector<std::int64_t>{5, 50, 250}));
  EXPECT_EQ(directory.names("op_profile_").size(), 1U);
  const auto lines = profiles_in(directory);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["step"], 51);
  EXPECT_EQ(lines[1]["rows"][0]["name"], "aten::mm");
  EXPECT_EQ(lines[1]["rows"][0]["calls"], 3);
}

TEST(OpProfiler, becomes_rarer_if_it_would_exceed_the_budget) {
  const TemporaryDirectory directory;
  ProfilingCounter source;
  train(directory, source, 300, 100, 2);  // 2 % of a hundred steps, of which 0.5 % are allowed
  EXPECT_EQ(profiled_steps(directory), (std::vector<std::int64_t>{5, 50}));
}

TEST(OpProfiler, is_excluded_from_the_averages) {
  const TemporaryDirectory directory;
  ProfilingCounter source;
  train(directory, source, 60, 1000, 5);
  const auto mfu = read_summary(directory)["final_statistics"]["mfu"].get<double>();
  EXPECT_NEAR(mfu, 0.01, 1e-12);
}

TEST(OpProfiler, is_off_at_zero_and_if_the_source_has_no_profiler) {
  const TemporaryDirectory off;
  const TemporaryDirectory refused;
  ProfilingCounter source;
  train(off, source, 60, 0);
  source.refuses = true;
  train(refused, source, 60, 1000);
  for (const auto* directory : {&off, &refused}) {
    EXPECT_TRUE(profiled_steps(*directory).empty());
    EXPECT_TRUE(directory->names("op_profile_").empty());
  }
}

}  // namespace
}  // namespace flopmeter
