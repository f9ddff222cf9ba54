// SPDX-License-Identifier: Apache-2.0
#include "../../../tests/support/random_records.h"

#include <flopmeter/core/record_json.h>
#include <flopmeter/runstore/record_reader.h>
#include <flopmeter/sinks/sinks.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

std::string line_of(const StepRecord& record) {
  std::string line;
  JsonWriter json{line};
  write_record(json, record);
  return line;
}

StepRecord numbered(std::int64_t step) {
  StepRecord record;
  record.step = step;
  return record;
}

TEST(RecordReader, gives_back_what_the_sink_wrote) {
  const TemporaryDirectory directory;
  RunInfo run;
  run.directory = directory.path();
  run.stamp = "20240129_103000";
  auto sink = make_sink("jsonl", run);
  ASSERT_TRUE(sink);
  RandomRecords random{7};
  std::vector<StepRecord> written;
  for (int i = 0; i < 2000; ++i) {
    written.push_back(random.next());
    ASSERT_TRUE((*sink)->write(written.back()));
  }
  RecordReader reader{directory.path() + "/records_20240129_103000.rank0.jsonl"};
  for (const StepRecord& record : written) {
    const auto read = reader.next();
    ASSERT_TRUE(read) << line_of(record);
    for (const Field& field : step_fields())
      ASSERT_EQ(field.read(*read), field.read(record)) << field.name << " in " << line_of(record);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.damaged_lines(), 0);
}

// A new field must come back too, unless it follows from others.
TEST(RecordReader, every_field_can_be_put_back_but_those_that_follow_from_others) {
  std::vector<std::string_view> derived;
  for (const Field& field : step_fields()) {
    if (field.set == nullptr) derived.push_back(field.name);
  }
  const std::vector<std::string_view> expected{
      "goodput", "tflops_per_device", "batch", "samples_per_second", "tokens_per_second"};
  EXPECT_EQ(derived, expected);
}

TEST(RecordReader, a_half_line_is_read_when_it_is_finished) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/growing.jsonl";
  RecordReader reader{path};
  EXPECT_FALSE(reader.next()) << "no file yet";
  const std::string line = line_of(numbered(5));
  append_file(path, line_of(numbered(4)) + "\n" + line.substr(0, 100));
  ASSERT_EQ(reader.next()->step, 4);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  append_file(path, line.substr(100));
  EXPECT_FALSE(reader.next()) << "its end is missing still";
  append_file(path, "\n");
  ASSERT_EQ(reader.next()->step, 5);
  EXPECT_EQ(reader.damaged_lines(), 0);
}

TEST(RecordReader, damaged_lines_are_counted_and_passed_over) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/damaged.jsonl";
  const std::string whole = line_of(numbered(1));
  const std::string later = "{\"v\":2" + whole.substr(6);
  ASSERT_EQ(parse_record(later), std::nullopt);
  const std::vector<std::string> bad{"",
                                     "null",
                                     "[1,2]",
                                     "{}",
                                     "{\"v\":1}",
                                     whole.substr(0, whole.size() - 1),
                                     whole.substr(0, 70) + whole,
                                     whole + whole,
                                     "{\"v\":1,\"step\":\"one\"}",
                                     "{\"v\":1,\"step\":1,\"rank\":99999999999}",
                                     "{\"v\":1,\"step\":1,\"tag\":\"nonsense\"}",
                                     std::string(300'000, '\0'),
                                     std::string(3'000'000, 'x'),
                                     later};
  for (const std::string& line : bad) append_file(path, line + "\n");
  append_file(path, whole + "\n");
  RecordReader reader{path};
  const auto read = reader.next();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 1);
  EXPECT_EQ(reader.damaged_lines(), static_cast<std::int64_t>(bad.size()));
  EXPECT_EQ(reader.offset(), static_cast<std::int64_t>(std::filesystem::file_size(path)));
}

TEST(RecordReader, unknown_keys_of_later_versions_do_no_harm) {
  const auto read = parse_record(
      R"({"v":1,"novel":[1,{"a":2}],"step":3,"phases":{"forward":0.5,"dreaming":2},"more":{"x":[]},"rank":2})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 3);
  EXPECT_EQ(read->rank, 2);
  EXPECT_EQ(read->phases[static_cast<std::size_t>(Phase::forward)], Seconds{0.5});
}

TEST(RecordReader, model_flops_by_dtype_come_back_where_there_is_one_dtype) {
  StepRecord record = numbered(1);
  record.model_flops = Flops{600};
  record.hardware_flops = Flops{800};
  record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)] = 800;
  auto read = parse_record(line_of(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->model_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)], 600U);
  record.hardware_flops_by_dtype[static_cast<std::size_t>(Dtype::fp8)] = 1;
  read = parse_record(line_of(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->model_flops_by_dtype[static_cast<std::size_t>(Dtype::bf16)], 0U);
}

}  // namespace
}  // namespace flopmeter
