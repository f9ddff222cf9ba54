// SPDX-License-Identifier: Apache-2.0
//
// Every format against a stored file.  FLOPMETER_UPDATE_GOLDEN=1 accepts what is written now.
#include "support.h"

#include <flopmeter/sinks/sinks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>

namespace flopmeter {
namespace {

using testing::HasSubstr;

const std::string golden_root = FLOPMETER_GOLDEN;

struct Case {
  std::string format;
  std::string name;
  bool breakdown = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.format << "/" << c.name;
}

/// The messages of an event file without their frames, the time of the start set to 0.
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
  const Case& c = GetParam();
  TemporaryDirectory directory;
  RunInfo run = sample_run(directory.path());
  run.breakdown = c.breakdown;
  const bool console = c.format == "console";
  if (console) testing::internal::CaptureStdout();
  auto sink = make_sink(c.format + ":" + (console ? "stdout" : directory.path() + "/out"), run);
  ASSERT_TRUE(sink) << sink.error().message;
  if (c.name != "empty") {
    for (std::int64_t step = 1; step <= 25; ++step) {
      StepRecord record = sample_step(step);
      if (c.name == "unknown") {
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
  if (c.format == "tensorboard") text = messages_in(text);
  const std::string stored = golden_root + "/" + c.format + "/" + c.name;
  if (std::getenv("FLOPMETER_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(golden_root + "/" + c.format);
    std::ofstream{stored, std::ios::binary} << text;
  }
  EXPECT_EQ(text, read_file(stored));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string format : {"jsonl",
                                   "csv",
                                   "perf_metrics",
                                   "perf_realtime",
                                   "perf_summary",
                                   "training_log",
                                   "prometheus",
                                   "console",
                                   "tensorboard"}) {
    for (const std::string name : {"run", "unknown", "empty"}) all.push_back({format, name});
  }
  for (const std::string format :
       {"perf_metrics", "perf_realtime", "perf_summary", "console", "tensorboard"})
    all.push_back({format, "breakdown", true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Formats, Golden, testing::ValuesIn(cases()), [](const auto& param) {
  return param.param.format + "_" + param.param.name;
});

TEST(PerfMetrics, the_table_is_that_of_flagscale_with_ours_after_it) {
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
