// SPDX-License-Identifier: Apache-2.0
//
// The contract of every kind of sink.  A new file in sinks/formats is tested automatically.
#include "support.h"

#include <flopmeter/sinks/sinks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

namespace flopmeter {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// German decimal comma.
class CommaPunctuation final : public std::numpunct<char> {
 protected:
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

class SinkContract : public testing::TestWithParam<const SinkPlugin*> {
 protected:
  std::unique_ptr<Sink> make(const std::string& target) {
    return make_for(sample_run(directory_.path()), target);
  }
  std::unique_ptr<Sink> make_for(const RunContext& run, const std::string& target) {
    auto made = GetParam()->make(run, for_plugin(target));
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : nullptr;
  }
  /// Some kinds take a target that is not a path.
  [[nodiscard]] std::string for_plugin(const std::string& target) const {
    if (GetParam()->name == "console") return "stdout";
    if (GetParam()->name == "metrics_endpoint") return "127.0.0.1:0";
    return target;
  }
  [[nodiscard]] bool writes_files() const {
    return GetParam()->name != "console" && GetParam()->name != "metrics_endpoint";
  }
  [[nodiscard]] std::string written() const {
    std::string text;
    for (const auto& file : directory_.files()) text += read_file(file);
    return text;
  }
  TemporaryDirectory directory_;
};

TEST_P(SinkContract, has_a_name_and_a_description) {
  EXPECT_FALSE(GetParam()->name.empty());
  EXPECT_FALSE(GetParam()->help.empty());
}

TEST_P(SinkContract, accepts_an_empty_record_and_two_flushes) {
  const auto sink = make("");
  EXPECT_TRUE(sink->flush());
  EXPECT_TRUE(sink->write(StepRecord{}));
  EXPECT_TRUE(sink->flush());
  EXPECT_TRUE(sink->flush());
  EXPECT_TRUE(sink->finish({}));
}

TEST_P(SinkContract, a_run_without_a_step_finishes) {
  EXPECT_TRUE(make("")->finish({}));
}

StepRecord extreme() {
  StepRecord record = sample_step(10);
  record.time_unix = 1e300;
  record.step_seconds = {std::numeric_limits<double>::infinity()};
  record.mfu = std::nan("");
  record.hfu = -std::numeric_limits<double>::infinity();
  record.loss = std::nan("");
  record.grad_norm = std::numeric_limits<double>::max();
  record.tokens = std::numeric_limits<std::int64_t>::max();
  record.model_flops = Flops{WideInt{1} << 100};
  record.phases[0] = Seconds{std::nan("")};
  record.devices = std::numeric_limits<std::int32_t>::max();
  return record;
}

TEST_P(SinkContract, nan_infinite_and_huge_values_leave_a_readable_file) {
  {
    const auto sink = make("");
    StepRecord record = extreme();
    for (std::int64_t step : {std::numeric_limits<std::int64_t>::min(),
                              std::int64_t{10},
                              std::numeric_limits<std::int64_t>::max()}) {
      record.step = step;
      EXPECT_TRUE(sink->write(record));
    }
    EXPECT_TRUE(sink->finish({}));
  }
  for (const auto& file : directory_.files()) {
    if (!file.ends_with(".json") && !file.ends_with(".jsonl")) continue;
    std::string text = read_file(file);
    if (file.ends_with(".jsonl")) text = text.substr(0, text.find('\n'));
    EXPECT_FALSE(nlohmann::json::parse(text, nullptr, false).is_discarded()) << file;
  }
}

TEST_P(SinkContract, the_locale_changes_nothing) {
  if (GetParam()->name == "tensorboard") GTEST_SKIP() << "contains its start time";
  const auto one = [this](const std::string& folder) {
    RunContext run = sample_run(directory_.path() + "/" + folder);
    const auto sink = make_for(run, "");
    for (std::int64_t step = 1; step <= 12; ++step) EXPECT_TRUE(sink->write(sample_step(step)));
    EXPECT_TRUE(sink->finish({}));
  };
  one("c");
  // C++ streams always use the comma; printf does if the machine has the locale.
  const std::locale before =
      std::locale::global(std::locale{std::locale::classic(), new CommaPunctuation});
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  one("de");
  std::locale::global(before);
  std::setlocale(LC_ALL, "C");
  const auto files = directory_.files();
  for (std::size_t i = 0; i < files.size() / 2; ++i)
    EXPECT_EQ(read_file(files[i]), read_file(files[i + files.size() / 2]));
}

TEST_P(SinkContract, hostile_names_stay_text) {
  RunContext run = sample_run(directory_.path());
  run.metadata.model = "a\nb\"c\x1b[2J</script>{{x}}\xff" + std::string(10'000, 'x');
  run.metadata.run_id = run.metadata.model;
  run.metadata.convention = run.metadata.model;
  run.metadata.peaks.device = run.metadata.model;
  run.metadata.peaks.source = run.metadata.model;
  testing::internal::CaptureStdout();
  {
    const auto sink = make_for(run, "");
    EXPECT_TRUE(sink->write(sample_step(10)));
    Finding finding;
    finding.rule = "x\x1b[2J\ny";
    finding.summary = run.metadata.model;
    EXPECT_TRUE(sink->finish({finding}));
  }
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_EQ(shown.empty(), GetParam()->name != "console");
  EXPECT_THAT(shown, Not(AnyOf(HasSubstr("\x1b"), HasSubstr("\xff"))));
  if (GetParam()->name == "tensorboard" || !writes_files()) return;
  const std::string text = written();
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
  for (const auto& file : directory_.files()) {
    if (!file.ends_with(".prom")) {
      EXPECT_THAT(read_file(file), Not(HasSubstr("\x1b"))) << file;
    }
    if (file.ends_with(".json")) {
      EXPECT_FALSE(nlohmann::json::parse(read_file(file), nullptr, false).is_discarded());
      EXPECT_THAT(read_file(file), Not(HasSubstr("</script>")));
    }
  }
}

TEST_P(SinkContract, an_unwritable_target_is_only_an_error) {
  if (!writes_files()) GTEST_SKIP() << "writes no file";
  const auto sink = make("/proc/self/nowhere/file");
  static_cast<void>(sink->write(sample_step(10)));
  const auto flushed = sink->flush();
  ASSERT_FALSE(flushed);
  EXPECT_THAT(flushed.error().message, HasSubstr("/proc/self/nowhere"));
  EXPECT_FALSE(sink->finish({}));
}

TEST_P(SinkContract, a_full_disk_is_only_an_error) {
  if (!writes_files() || GetParam()->name == "tensorboard")
    GTEST_SKIP() << "writes no file of that name";
  const auto sink = make("/dev/full");
  const bool wrote = sink->write(sample_step(10)).has_value();
  const bool flushed = sink->flush().has_value();
  EXPECT_FALSE(wrote && flushed);
}

TEST_P(SinkContract, a_link_is_not_followed) {
  if (!writes_files()) GTEST_SKIP() << "writes no file";
  const std::string victim = directory_.path() + "/victim";
  std::ofstream{victim} << "precious";
  std::filesystem::create_symlink(victim, directory_.path() + "/link");
  const auto sink = make(directory_.path() + "/link");
  static_cast<void>(sink->write(sample_step(10)));
  static_cast<void>(sink->finish({}));
  EXPECT_EQ(read_file(victim), "precious");
}

INSTANTIATE_TEST_SUITE_P(All,
                         SinkContract,
                         testing::ValuesIn(sink_plugins().begin(), sink_plugins().end()),
                         [](const auto& param) { return std::string{param.param->name}; });

TEST(MakeSink, an_unknown_name_suggests_the_nearest) {
  const auto made = make_sink("tensorbord", RunContext{});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("did you mean tensorboard"));
}

TEST(MetricsEndpoint, needs_a_token_beyond_loopback) {
  EXPECT_FALSE(make_sink("metrics_endpoint:0.0.0.0:0", RunContext{}));
  EXPECT_TRUE(make_sink("metrics_endpoint:0.0.0.0:0#secret", RunContext{}));
  EXPECT_FALSE(make_sink("metrics_endpoint:127.0.0.1:99999", RunContext{}));
}

}  // namespace
}  // namespace flopmeter
