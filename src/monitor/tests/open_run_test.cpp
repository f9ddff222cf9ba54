// SPDX-License-Identifier: Apache-2.0
#include "../../../tests/support/random_records.h"

#include <flopmeter/core/record_json.h>
#include <flopmeter/runstore/run_directory.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace flopmeter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void write_steps(const TemporaryDirectory& directory,
                 const std::string& file,
                 std::initializer_list<std::int64_t> steps) {
  for (const std::int64_t step : steps) {
    StepRecord record;
    record.step = step;
    record.loss = static_cast<double>(file[16]);
    if (step % 10 == 9) record.tag = StepTag::evaluation;
    std::string line;
    JsonWriter json{line};
    write_record(json, record);
    append_file(directory.path() + "/" + file, line + "\n");
  }
}

TEST(OpenRun, reads_the_description_and_lists_the_streams) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json",
              R"({"schema": "flopmeter.run/1", "run_id": "0123456789abcdef",
    "stamp": "20240129_103000", "model": null, "convention": "model-v1", "mode": "auto",
    "device": {"name": "A100", "source": "catalog", "peak_flops_per_second": {"bf16": 312000000000000, "fp32": 1.95e13}, "memory_bytes_per_second": 2.039e12},
    "world": {"size": 12, "data_parallel": 6, "devices_per_rank": 1}, "log_interval": 10, "details": {"a": 1}})");
  for (const char* name : {"records_20240129_103000.rank10.jsonl",
                           "records_20240129_103000.rank2.jsonl",
                           "records_20240128_103000.rank2.jsonl",
                           "records_x.jsonl",
                           "perf_realtime.log",
                           "records_20240128_103000.rank-1.jsonl",
                           "records_20240129_103000.rank2.2.jsonl"})
    append_file(directory.path() + "/" + name, "");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  const RunDescription& description = (*run).description;
  EXPECT_EQ(description.run_id, "0123456789abcdef");
  EXPECT_EQ(description.model, "");
  EXPECT_EQ(description.convention, "model-v1");
  EXPECT_EQ(description.peaks.device, "A100");
  EXPECT_EQ(description.peaks.peak(Dtype::bf16), FlopsPerSecond{312e12});
  EXPECT_EQ(description.peaks.peak(Dtype::fp8), std::nullopt);
  EXPECT_EQ(description.peaks.memory_bytes_per_second, 2.039e12);
  EXPECT_EQ(description.world_size, 12);
  EXPECT_EQ(description.data_parallel, 6);
  EXPECT_EQ(description.details, R"({"a":1})");
  EXPECT_THAT((*run).ranks(), ElementsAre(2, 10));
  const auto files = (*run).files_of(2);
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].stamp, "20240128_103000");
}

TEST(OpenRun, says_what_is_missing) {
  const TemporaryDirectory directory;
  EXPECT_THAT(open_run(directory.path()).error().message, HasSubstr("is no run directory"));
  EXPECT_EQ(open_run(directory.path() + "/none").error().code, ErrorCode::not_found);
  append_file(directory.path() + "/run.json", "{\"run_id\": ");
  EXPECT_FALSE(open_run(directory.path())) << "damaged, and no streams";
  append_file(directory.path() + "/records_20240128_103000.rank0.jsonl", "");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  EXPECT_EQ((*run).description.world_size, std::nullopt);
  EXPECT_THAT((*run).note, HasSubstr("/run.json is damaged: what it says"));
}

TEST(OpenRun, keeps_what_bad_bytes_leave_readable) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json",
              "{\"run_id\": \"0123\", \"model\": \"caf\xe9 \xf0\x9f\", \"world\": {\"size\": 4}}");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ((*run).description.run_id, "0123");
  EXPECT_EQ((*run).description.model, "caf\ufffd \ufffd\ufffd");
  EXPECT_EQ((*run).description.world_size, 4);
  EXPECT_EQ((*run).note, "");
}

TEST(ReadWindow, a_step_done_again_after_a_restart_counts_as_it_was_done_last) {
  const TemporaryDirectory directory;
  write_steps(directory, "records_20240128_103000.rank0.jsonl", {1, 2, 3, 9, 4, 5});
  write_steps(directory, "records_20240129_103000.rank0.jsonl", {4, 5, 6});
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  std::vector<std::int64_t> steps;
  for (const StepRecord& record : read_window(*run, 0)) steps.push_back(record.step);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(read_window(*run, 0, 2).front().step, 5);
  EXPECT_TRUE(read_window(*run, 1).empty());
}

TEST(ReadWindow, takes_the_newest_from_the_end_of_long_streams) {
  const TemporaryDirectory directory;
  const auto write = [&directory](const char* stamp, std::int64_t from, std::int64_t to) {
    std::string text;
    for (std::int64_t step = from; step <= to; ++step) {
      StepRecord record;
      record.step = step;
      if (step > 150) record.tag = StepTag::evaluation;  // more of them than a first look reads
      JsonWriter json{text};
      write_record(json, record);
      text.push_back('\n');
    }
    append_file(directory.path() + "/records_" + stamp + ".rank0.jsonl", text);
  };
  write("20240128_103000", 1, 140);
  write("20240129_103000", 100, 3000);
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  for (const bool all : {false, true}) {
    for (const std::size_t most : {1U, 7U, 60U, 3000U}) {
      std::vector<std::int64_t> steps;
      for (const StepRecord& record : read_window(*run, 0, most, all)) steps.push_back(record.step);
      const std::int64_t last = all ? 3000 : 150;
      const std::size_t count = std::min<std::size_t>(most, static_cast<std::size_t>(last));
      std::vector<std::int64_t> expected(count);
      std::iota(expected.begin(), expected.end(), last - static_cast<std::int64_t>(count) + 1);
      EXPECT_EQ(steps, expected) << most << (all ? " of all" : " train steps");
    }
  }
}

}  // namespace
}  // namespace flopmeter
