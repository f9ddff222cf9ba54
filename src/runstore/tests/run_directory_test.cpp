// SPDX-License-Identifier: Apache-2.0
#include "../../../tests/support/random_records.h"

#include <flopmeter/runstore/input_limits.h>
#include <flopmeter/runstore/profile_stream.h>
#include <flopmeter/runstore/record_stream.h>
#include <flopmeter/runstore/run_directory.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/runstore/run_metadata_json.h>
#include <flopmeter/runstore/run_start.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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

RunMetadata sample_metadata() {
  RunMetadata run;
  run.run_id = "0123456789abcdef";
  run.stamp = "20240129_103000";
  run.model = "caf\u00e9 \"7B\"\n";
  run.convention = "model-v1";
  run.mode = "auto";
  run.peaks.device = "A100";
  run.peaks.source = "catalog";
  run.peaks.set(Dtype::bf16, {312e12});
  run.peaks.memory_bytes_per_second = 2.039e12;
  run.peaks.shapes.push_back({Dtype::fp32, 512, 1024, {1.5e12}});
  run.world_size = 12;
  run.data_parallel = 6;
  run.pipeline_parallel = 2;
  run.devices_per_rank = 1;
  run.processors = 64;
  run.log_interval = 10;
  run.total_steps = 20'000'000'000;
  run.model_source = {.config = R"({"hidden_size":16,"nested":{"a":[1,2.5,null]}})",
                      .family = "llama",
                      .trainable = "all",
                      .recompute = "full",
                      .attention = "eager",
                      .mtp = false,
                      .dtype = Dtype::bf16,
                      .parameters = 7'000'000'000};
  return run;
}

TEST(RunMetadata, reads_back_as_written) {
  const RunMetadata run = sample_metadata();
  const auto read = parse_run_metadata(to_json(run));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(run));
  EXPECT_EQ((*read).model, run.model);
  EXPECT_EQ((*read).peaks.peak(Dtype::bf16), FlopsPerSecond{312e12});
  EXPECT_EQ((*read).peaks.peak(Dtype::fp8), std::nullopt);
  EXPECT_EQ((*read).peaks.shapes.size(), 1U);
  EXPECT_EQ((*read).world_size, 12);
  EXPECT_EQ((*read).total_steps, 20'000'000'000);
  EXPECT_EQ((*read).tensor_parallel, std::nullopt);
  EXPECT_EQ((*read).model_source.config, run.model_source.config);
  EXPECT_EQ((*read).model_source.mtp, false);
  EXPECT_EQ((*read).model_source.parameters, 7'000'000'000);
  const auto bare = parse_run_metadata(to_json(RunMetadata{}));
  ASSERT_TRUE(bare);
  EXPECT_EQ(to_json(*bare), to_json(RunMetadata{}));
  EXPECT_FALSE((*bare).model_source.known());
}

TEST(RunMetadata, values_of_another_type_are_unknown) {
  const auto read = parse_run_metadata(
      R"({"schema": "flopmeter.run/2", "run_id": 7, "processors": -1, "log_interval": 1.5,
          "device": [], "world": {"size": 99999999999, "data_parallel": "6"}, "model_source": 3})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(RunMetadata{}));
}

TEST(RunMetadata, deep_nesting_is_refused) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(parse_run_metadata(R"({"schema": "flopmeter.run/2", "x": )" + deep));
  EXPECT_FALSE(parse_run_metadata(R"({"schema": "flopmeter.run/2", "x": )" + std::string(200, '[') +
                                  std::string(200, ']') + "}"));
}

TEST(OpenRun, reads_the_metadata_and_lists_the_streams) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json", to_json(sample_metadata()));
  for (const char* name : {"records_20240129_103000.rank10.jsonl",
                           "records_20240129_103000.rank2.jsonl",
                           "records_20240128_103000.rank2.jsonl",
                           "records_x.jsonl",
                           "perf_realtime.log",
                           "records_20240128_103000.rank-1.jsonl",
                           "records_20240128_103000.rank99999999999.jsonl",
                           "records_20240129_103000.rank2.2.jsonl"})
    append_file(directory.path() + "/" + name, "");
  ASSERT_EQ(mkfifo((directory.path() + "/records_20240129_103000.rank3.jsonl").c_str(), 0600), 0);
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(to_json((*run).metadata), to_json(sample_metadata()));
  EXPECT_THAT((*run).ranks(), ElementsAre(2, 10)) << "ranks come from files, not from world_size";
  EXPECT_THAT((*run).note, HasSubstr("rank3.jsonl is not read: not a regular file"));
  const auto files = (*run).files_of(2);
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].stamp, "20240128_103000");
}

TEST(OpenRun, states_what_is_missing) {
  const TemporaryDirectory directory;
  EXPECT_THAT(open_run(directory.path()).error().message, HasSubstr("is not a run directory"));
  for (const std::string name : {"/slow", "/fast"}) {
    std::filesystem::create_directories(directory.path() + name);
    std::ofstream{directory.path() + name + "/run.json"} << "{}";
  }
  EXPECT_THAT(
      open_run(directory.path()).error().message,
      HasSubstr("runs below it: " + directory.path() + "/fast, " + directory.path() + "/slow"));
  EXPECT_EQ(open_run(directory.path() + "/none").error().code, ErrorCode::not_found);
  std::filesystem::create_directories(directory.path() + "/empty");
  std::filesystem::create_directory_symlink("empty", directory.path() + "/latest");
  const auto latest = open_run(directory.path() + "/latest");
  EXPECT_EQ(latest.error().code, ErrorCode::not_found);
  EXPECT_THAT(latest.error().message,
              HasSubstr("/empty, has no records; name a run: " + directory.path() + "/fast"));
  append_file(directory.path() + "/run.json", "{\"run_id\": ");
  EXPECT_FALSE(open_run(directory.path())) << "damaged, and no streams";
  append_file(directory.path() + "/records_20240128_103000.rank0.jsonl", "");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  EXPECT_EQ((*run).metadata.world_size, std::nullopt);
  EXPECT_THAT((*run).note, HasSubstr("/run.json is damaged"));
}

TEST(OpenRun, states_that_no_record_can_be_read) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json", R"({"schema": "flopmeter.run/2", "run_id": "0123"})");
  append_file(directory.path() + "/records_20240128_103000.rank0.jsonl", "{\n{}\n");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  EXPECT_THAT((*run).note, HasSubstr("has no readable record: 2 damaged lines"));
}

TEST(OpenRun, damaged_records_that_another_program_wrote_are_of_this_version) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json", R"({"schema": "flopmeter.run/2", "run_id": "0123"})");
  append_file(directory.path() + "/records_20240128_103000.rank0.jsonl",
              "{\"v\": 2, \"step\": 1, \"step_seconds\": -1}\n");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  EXPECT_THAT((*run).note, HasSubstr("has no readable record: 1 damaged lines"));
}

TEST(OpenRun, states_that_records_are_of_another_version) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json", R"({"schema": "flopmeter.run/2", "run_id": "0123"})");
  append_file(directory.path() + "/records_20240128_103000.rank0.jsonl", "{\"v\":1,\"step\":1}\n");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  EXPECT_THAT((*run).note, HasSubstr("is of another version of flopmeter"));
}

TEST(InputLimits, a_claimed_world_size_is_bounded_by_files) {
  EXPECT_EQ(InputLimits::world_size(2048, 1), 2048);
  EXPECT_EQ(InputLimits::world_size(10'000'000, 1), 1);
  EXPECT_EQ(InputLimits::world_size(10'000'000, 200'000), 10'000'000);
  EXPECT_EQ(InputLimits::world_size(-1, 0), 1);
}

TEST(OpenRun, does_not_read_a_pipe) {
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory.path() + "/run.json").c_str(), 0600), 0);
  append_file(directory.path() + "/records_20240128_103000.rank0.jsonl", "");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run);
  EXPECT_THAT((*run).note, HasSubstr("not a regular file"));
}

TEST(OpenRun, refuses_a_run_of_another_version_with_one_line) {
  const TemporaryDirectory old;
  append_file(old.path() + "/run.json", R"({"schema": "flopmeter.run/1", "run_id": "0123"})");
  const TemporaryDirectory records_only;
  append_file(records_only.path() + "/records_20240128_103000.rank0.jsonl",
              "{\"v\":1,\"step\":1,\"time_unix\":2}\n");
  for (const TemporaryDirectory* directory : {&old, &records_only}) {
    const auto run = open_run(directory->path());
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().code, ErrorCode::unsupported);
    EXPECT_THAT(run.error().message, HasSubstr("another version of flopmeter"));
    EXPECT_EQ(run.error().message.find('\n'), std::string::npos);
  }
}

TEST(OpenRun, reads_metadata_with_invalid_utf_8) {
  const TemporaryDirectory directory;
  append_file(directory.path() + "/run.json",
              "{\"schema\": \"flopmeter.run/2\", \"run_id\": \"0123\", \"model\": \"caf\xe9 "
              "\xf0\x9f\", \"world\": {\"size\": 4}}");
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ((*run).metadata.run_id, "0123");
  EXPECT_EQ((*run).metadata.model, "caf\ufffd \ufffd\ufffd");
  EXPECT_EQ((*run).metadata.world_size, 4);
  EXPECT_EQ((*run).note, "");
}

TEST(RunLayout, names_follow_the_stamp_and_the_rank) {
  const RunLayout layout{"d", "20240129_103000", 7};
  EXPECT_EQ(layout.metadata(), "d/run.json");
  EXPECT_EQ(layout.records(), "d/records_20240129_103000.rank7.jsonl");
  EXPECT_EQ(layout.op_profile(), "d/op_profile_20240129_103000.rank7.jsonl");
  EXPECT_EQ(layout.perf_metrics(), "d/perf_metrics_20240129_103000.log");
  const auto parsed = RunLayout::parse_records("records_20240129_103000.rank7.jsonl");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->rank, 7);
  EXPECT_EQ(parsed->stamp, "20240129_103000");
  EXPECT_EQ(RunLayout::stamp_in("perf_summary_20240129_103000.json"), "20240129_103000");
  EXPECT_EQ(RunLayout::stamp_in("perf_metrics_notes_of_mine.log"), "");
}

class RunDirectoryRule : public testing::Test {
 protected:
  RunDirectoryRule() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory_.path());
  }
  ~RunDirectoryRule() override { std::filesystem::current_path(before_); }
  static std::string choose(int world_size, std::vector<const char*> environment = {}) {
    environment.push_back(nullptr);
    return choose_run_directory("", world_size, environment.data(), 1706524200);
  }

 private:
  TemporaryDirectory directory_;
  std::filesystem::path before_;
};

TEST_F(RunDirectoryRule, a_named_directory_is_used_as_it_is) {
  EXPECT_EQ(choose_run_directory("x/y", 1, nullptr, 0), "x/y");
  EXPECT_FALSE(std::filesystem::exists("logs"));
}

TEST_F(RunDirectoryRule, each_start_of_a_single_process_gets_its_own_directory) {
  const std::string first = choose(1);
  const std::string second = choose(1, {"SLURM_JOB_ID=7"});
  EXPECT_EQ(first, "logs/perf_monitor/" + stamp_of(1706524200));
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::filesystem::is_directory(first));
  EXPECT_EQ(
      "logs/perf_monitor/" + std::filesystem::read_symlink("logs/perf_monitor/latest").string(),
      second);
}

TEST_F(RunDirectoryRule, ranks_of_a_job_share_the_directory_of_its_id) {
  EXPECT_EQ(choose(4), "logs/perf_monitor");
  EXPECT_EQ(choose(4, {"TORCHELASTIC_RUN_ID=none"}), "logs/perf_monitor");
  EXPECT_EQ(choose(4, {"TORCHELASTIC_RUN_ID=a/../b"}), "logs/perf_monitor/a_.._b");
  EXPECT_EQ(choose(4, {"TORCHELASTIC_RUN_ID=t", "SLURM_JOB_ID=123"}), "logs/perf_monitor/123");
  EXPECT_EQ(choose(4, {"SLURM_JOB_ID=123", "FLOPMETER_RUN_ID=mine"}), "logs/perf_monitor/mine");
  EXPECT_EQ(choose(4, {"SLURM_JOB_ID=.."}), "logs/perf_monitor");
}

TEST(StartRun, restarts_keep_the_run_id_and_continue_the_run) {
  const TemporaryDirectory directory;
  const auto start = [&](const std::string& id, double time) {
    RunContext run;
    run.directory = directory.path();
    run.metadata.run_id = id;
    const StartedRun started = start_run(run, time, 0);
    EXPECT_EQ(started.problem, "");
    return std::pair{run, started};
  };
  const auto [first, nothing] = start("", 1'000'000);
  EXPECT_EQ(first.metadata.run_id.size(), 16U);
  EXPECT_FALSE(nothing.earlier);
  StepRecord record;
  record.step = 41;
  record.time_unix = 1'000'100;
  record.run_seconds = Seconds{100};
  record.productive_seconds = Seconds{80};
  std::string line;
  JsonWriter json{line};
  write_record(json, record);
  append_file(RunLayout{first}.records(), line + "\n{\"v\":2,\"st");
  const auto [second, restarted] = start("", 1'000'200);
  EXPECT_EQ(second.metadata.run_id, first.metadata.run_id);
  EXPECT_NE(second.metadata.stamp, first.metadata.stamp);
  ASSERT_TRUE(restarted.earlier);
  EXPECT_EQ(restarted.earlier->last_step, 41);
  EXPECT_EQ(restarted.earlier->first_start_unix, 1'000'000);
  EXPECT_EQ(restarted.earlier->productive_seconds, 80);
  const auto [other, separate] = start("another", 1'000'300);
  EXPECT_EQ(other.metadata.run_id, "another");
  EXPECT_FALSE(separate.earlier) << "another run id is another run";
}

TEST(ProfileStream, only_the_newest_of_many_rows_are_kept) {
  const TemporaryDirectory directory;
  const RunLayout layout{directory.path(), "20240129_103000", 0};
  append_file(directory.path() + "/run.json", to_json(sample_metadata()));
  append_file(layout.records(), "");
  OpProfile profile;
  profile.rows.resize(InputLimits::profile_rows);
  for (profile.step = 0; profile.step < 25; ++profile.step)
    append_file(layout.op_profile(), to_json(profile, InputLimits::profile_rows) + "\n");
  const auto profiles = read_profiles(*open_run(directory.path()), 0);
  ASSERT_EQ(profiles.size(), InputLimits::profile_rows_per_rank / InputLimits::profile_rows);
  EXPECT_EQ(profiles.back().step, 24);
}

TEST(ProfileStream, profiles_read_back_as_written) {
  const TemporaryDirectory directory;
  OpProfile profile;
  profile.step = 5;
  profile.time_unix = 1706524200.5;
  profile.wall = {0.5};
  profile.busy = {0.25};
  profile.calls = 3;
  profile.on_device = true;
  profile.rows.push_back({.name = "aten::mm \"x\"",
                          .kind = OpKind::compute,
                          .calls = 3,
                          .self = {0.125},
                          .elements = 1024,
                          .backward = true,
                          .phase = Phase::backward,
                          .recompute = true,
                          .across_devices = true,
                          .shape = "[2,3] [3,4]",
                          .flops = 48,
                          .bytes = 96});
  profile.idle.push_back({.phase = Phase::forward, .stall = true, .count = 2, .time = {0.01}});
  profile.timeline = {
      .step = {},
      .seconds = 0.5,
      .lanes = {{.name = "compute",
                 .kind = "compute",
                 .spans = {{.start = 0.25, .seconds = 0.125, .name = "aten::mm \"x\""},
                           {.start = 0.375, .seconds = 0.0625, .name = "aten::mm \"x\""}}}},
      .omitted = 7};
  const RunLayout layout{directory.path(), "20240129_103000", 0};
  append_file(layout.records(), "");
  ProfileWriter writer{layout.op_profile(), 10'000};
  ASSERT_TRUE(writer.add(profile));
  append_file(layout.op_profile(), "{\"v\":1}\nnonsense\n");
  ASSERT_TRUE(writer.add(profile));
  const auto run = open_run(directory.path());
  ASSERT_TRUE(run) << run.error().message;
  const auto profiles = read_profiles(*run, 0);
  ASSERT_EQ(profiles.size(), 2U);
  EXPECT_EQ(to_json(profiles[1]), to_json(profile));
  profile.timeline = {};
  EXPECT_EQ(to_json(profiles[0]), to_json(profile)) << "only the newest has a timeline";
  EXPECT_EQ(profiles[0].rows[0].name, profile.rows[0].name);
}

TEST(ProfileStream, nothing_is_written_past_the_limit) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/op_profile.jsonl";
  ProfileWriter writer{path, 500};
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(writer.add(OpProfile{}));
  EXPECT_LE(read_file(path).size(), 500U);
  EXPECT_FALSE(parse_op_profile("[]"));
  EXPECT_FALSE(parse_op_profile("{\"v\":1,\"step\":\"x\"}"));
}

TEST(ReadWindow, a_repeated_step_counts_as_its_last_record) {
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
