// SPDX-License-Identifier: Apache-2.0
//
// Compares every sink with its stored file.  A sink in sinks/formats is found automatically; `make
// golden` writes the files.
#include "support.h"

#include <flopmeter/core/text.h>
#include <flopmeter/sinks/sinks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ctime>

namespace flopmeter {
namespace {

using testing::HasSubstr;

const std::string golden_root = FLOPMETER_GOLDEN;

struct Case {
  const SinkPlugin* plugin = nullptr;
  std::string name;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.plugin->name << "/" << c.name;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back().push_back(c);
    }
  }
  return lines;
}

/// The part of `line` around byte `at`.
std::string excerpt(const std::string& line, std::size_t at) {
  constexpr std::size_t before = 40;
  constexpr std::size_t length = 160;
  const std::size_t from = at > before ? at - before : 0;
  return (from > 0 ? "…" : "") + printable(line.substr(std::min(from, line.size()), length));
}

/// The first lines that differ, each from shortly before the difference on.
std::string difference(const std::string& stored, const std::string& written) {
  constexpr int most_lines = 10;
  const auto old_lines = lines_of(stored);
  const auto new_lines = lines_of(written);
  std::string text;
  int shown = 0;
  for (std::size_t i = 0; i < std::max(old_lines.size(), new_lines.size()); ++i) {
    const std::string old_line = i < old_lines.size() ? old_lines[i] : "(no line)";
    const std::string new_line = i < new_lines.size() ? new_lines[i] : "(no line)";
    if (old_line == new_line) continue;
    if (++shown > most_lines) return text + "and further lines\n";
    const auto at = static_cast<std::size_t>(std::distance(
        old_line.begin(),
        std::mismatch(old_line.begin(), old_line.end(), new_line.begin(), new_line.end()).first));
    text += "line " + std::to_string(i + 1) + "\n- " + excerpt(old_line, at) + "\n+ " +
            excerpt(new_line, at) + "\n";
  }
  return text;
}

/// The messages of an event file without frames, with the start time set to 0.
std::string messages_in(const std::string& events) {
  std::string messages;
  for (std::size_t at = 0, number = 0; at + 12 <= events.size(); ++number) {
    std::uint64_t size = 0;
    std::memcpy(&size, events.data() + at, sizeof size);
    std::string message = events.substr(at + 12, size);
    if (number < 2) message.replace(1, sizeof(double), sizeof(double), '\0');
    messages += message + "\n";
    at += 12 + size + 4;
  }
  return messages;
}

class Golden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_P(Golden, output_equals_the_stored_file) {
  const auto& [plugin, name] = GetParam();
  if (plugin->name == "metrics_endpoint") GTEST_SKIP() << "serves the text of prometheus";
  TemporaryDirectory directory;
  RunContext run = sample_run(directory.path());
  run.breakdown = name == "breakdown";
  const bool console = plugin->name == "console";
  if (console) {
    testing::internal::CaptureStdout();
    run.directory = "/tmp";  // named in the text
  }
  auto sink = plugin->make(run, console ? "stdout" : directory.path() + "/out");
  ASSERT_TRUE(sink) << sink.error().message;
  if (name != "empty") {
    for (std::int64_t step = 1; step <= 25; ++step) {
      StepRecord record = sample_step(step);
      if (name == "unknown") {
        const double time = record.time_unix;
        record = {};
        record.step = step;
        record.time_unix = time;
      }
      if (step == 13) record.tag = StepTag::evaluation;
      ASSERT_TRUE((*sink)->write(record));
    }
  }
  ASSERT_TRUE((*sink)->finish({}));
  std::string text =
      console ? testing::internal::GetCapturedStdout() : read_file(directory.files().at(0));
  if (plugin->name == "tensorboard") text = messages_in(text);
  const std::string folder = golden_root + "/" + std::string{plugin->name} + "/";
  // Phases do not change every format.
  const bool same_as_run = name == "breakdown" && text == read_file(folder + "run");
  if (std::getenv("FLOPMETER_UPDATE_GOLDEN") != nullptr && !same_as_run) {
    std::filesystem::create_directories(folder);
    std::ofstream{folder + name, std::ios::binary} << text;
  }
  if (same_as_run) return;
  ASSERT_TRUE(std::filesystem::exists(folder + name)) << "run `make golden` to write " << name;
  const std::string stored = read_file(folder + name);
  EXPECT_TRUE(text == stored) << "the output of " << plugin->name << " for case '" << name
                              << "' changed; if that is intended, run `make golden`\n"
                              << difference(stored, text);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const SinkPlugin* plugin : sink_plugins()) {
    for (const std::string name : {"run", "unknown", "empty", "breakdown"})
      all.push_back({plugin, name});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Formats, Golden, testing::ValuesIn(cases()), [](const auto& param) {
  return std::string{param.param.plugin->name} + "_" + param.param.name;
});

/// Text that the console prints in `use`.
template <class Use>
std::string console_text(Use use) {
  const SinkPlugin* const* plugin = nullptr;
  for (const SinkPlugin* const& each : sink_plugins()) {
    if (each->name == "console") plugin = &each;
  }
  testing::internal::CaptureStdout();
  auto sink = (*plugin)->make(sample_run("/tmp"), "stdout");
  EXPECT_TRUE(sink);
  use(**sink);
  return testing::internal::GetCapturedStdout();
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Console, prints_at_most_one_line_in_ten_seconds) {
  const std::string text = console_text([](Sink& sink) {
    for (std::int64_t step = 1; step <= 1000; ++step) {
      StepRecord record = sample_step(step);
      record.time_unix = 1e9 + 0.05 * static_cast<double>(step);  // 50 s in total
      ASSERT_TRUE(sink.write(record));
    }
  });
  EXPECT_GE(count(text, "flopmeter  step "), 4U) << text;
  EXPECT_LE(count(text, "flopmeter  step "), 5U) << text;
}

TEST(Console, prints_each_finding_once_and_only_if_it_is_worth_one_percent) {
  Finding large;
  large.rule = "data_loading";
  large.summary = "the steps wait for data";
  large.recommendation = "raise num_workers";
  large.share = 0.5;
  Finding small = large;
  small.rule = "evaluation";
  small.share = 0.004;
  const std::string text = console_text([&](Sink& sink) {
    ASSERT_TRUE(sink.write(sample_step(1)));
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(sink.found({large, small}));
      ASSERT_TRUE(sink.found({}));
    }
  });
  EXPECT_EQ(count(text, "data_loading, saves 50.0 %: the steps wait for data"), 1U) << text;
  EXPECT_EQ(count(text, "evaluation"), 0U) << text;
}

TEST(Console, names_no_records_that_cannot_be_written) {
  testing::internal::CaptureStdout();
  for (const SinkPlugin* const plugin : sink_plugins()) {
    if (plugin->name != "console") continue;
    const auto sink = plugin->make(sample_run("/proc/none"), "stdout");
    ASSERT_TRUE((*sink)->write(sample_step(1)));
    ASSERT_TRUE((*sink)->finish({}));
  }
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(count(text, "no records: cannot write to /proc/none"), 1U) << text;
  EXPECT_EQ(count(text, "diagnose"), 0U) << text;
}

TEST(Console, ends_with_at_most_five_lines) {
  std::vector<Finding> findings(7);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    findings[i].rule = "rule_" + std::to_string(i);
    findings[i].share = 0.1;
  }
  const std::string text = console_text([&](Sink& sink) {
    ASSERT_TRUE(sink.write(sample_step(1)));
    ASSERT_TRUE(sink.finish(findings));
  });
  EXPECT_EQ(count(text, "\n"), 1U + 5U) << text;
  EXPECT_EQ(count(text, "\nflopmeter  "), 5U) << text;
}

TEST(Console, scales_the_unit_of_small_rates) {
  const std::string text = console_text([&](Sink& sink) {
    StepRecord record = sample_step(1);
    record.model_flops = Flops{850'000'000};
    ASSERT_TRUE(sink.write(record));
    ASSERT_TRUE(sink.finish({}));
  });
  EXPECT_EQ(count(text, "3.40 GFLOP/s"), 1U) << text;
}

TEST(PerfMetrics, the_table_has_the_columns_of_flagscale_first) {
  setenv("TZ", "UTC", 1);
  tzset();
  TemporaryDirectory directory;
  auto sink = make_sink("perf_metrics", sample_run(directory.path()));
  for (std::int64_t step = 1; step <= 10; ++step) ASSERT_TRUE((*sink)->write(sample_step(step)));
  const std::string text = read_file(directory.path() + "/perf_metrics_20240129_103000.log");
  EXPECT_THAT(text, HasSubstr("Performance Monitor Session Started: 2024-01-29 10:30:00\n"));
  EXPECT_THAT(text,
              HasSubstr("\nTimestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    "
                        "Tokens/s     Time(ms)   Memory(GB)"));
  EXPECT_THAT(text,
              HasSubstr("\n2024-01-29 10:30:15  10       125.34       1002.72    512.0        "
                        "1048576      250.0      42.50"));
}

}  // namespace
}  // namespace flopmeter
