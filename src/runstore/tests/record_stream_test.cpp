// SPDX-License-Identifier: Apache-2.0
#include "../../../tests/support/random_records.h"

#include <flopmeter/core/step_fields.h>
#include <flopmeter/runstore/record_stream.h>

#include <gtest/gtest.h>
#include <sys/stat.h>

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

TEST(RecordStream, every_field_reads_back_as_written) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/records.jsonl";
  RandomRecords random{7};
  std::vector<StepRecord> written;
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    written.push_back(random.next());
    text += line_of(written.back()) + "\n";
  }
  append_file(path, text);
  RecordReader reader{path};
  for (const StepRecord& record : written) {
    const auto read = reader.next();
    ASSERT_TRUE(read) << line_of(record);
    for (const Field& field : step_fields()) {
      if (field.name == "batch") {
        ASSERT_EQ(to_text(read->batch), to_text(record.batch));
      } else {
        ASSERT_EQ(field.read(*read), field.read(record)) << field.name << " in " << line_of(record);
      }
    }
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.damaged_lines(), 0);
}

TEST(RecordStream, only_fields_that_follow_from_others_are_not_read_back) {
  std::vector<std::string_view> derived;
  for (const Field& field : step_fields()) {
    if (field.set == nullptr) derived.push_back(field.name);
  }
  const std::vector<std::string_view> expected{
      "goodput", "tflops_per_device", "samples_per_second", "tokens_per_second"};
  EXPECT_EQ(derived, expected);
}

TEST(RecordReader, does_not_read_pipes_and_devices) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string{"/dev/zero"}, directory.path()}) {
    RecordReader reader{path};
    EXPECT_FALSE(reader.next()) << path;
  }
}

TEST(RecordReader, an_incomplete_line_is_read_once_it_is_complete) {
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
  EXPECT_FALSE(reader.next()) << "the line end is missing";
  append_file(path, "\n");
  ASSERT_EQ(reader.next()->step, 5);
  EXPECT_EQ(reader.damaged_lines(), 0);
}

TEST(RecordReader, damaged_lines_are_counted_and_skipped) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/damaged.jsonl";
  const std::string whole = line_of(numbered(1));
  const std::string later = "{\"v\":3" + whole.substr(6);
  ASSERT_EQ(parse_record(later), std::nullopt);
  const std::vector<std::string> bad{
      "",
      "null",
      "[1,2]",
      "{}",
      "{\"v\":2}",
      whole.substr(0, whole.size() - 1),
      whole.substr(0, 70) + whole,
      whole + whole,
      "{\"v\":2,\"step\":\"one\"}",
      "{\"v\":2,\"step\":1,\"rank\":99999999999}",
      "{\"v\":2,\"step\":1,\"tag\":\"nonsense\"}",
      std::string{"{\"v\":2,\"step\":1,\"epoch\":nul\0}", 29},
      "{\"v\":2,\"step\":1,\"epoch\":nullx}",
      "{\"v\":2,\"step\":1,\"step_seconds\":1e300}",
      "{\"v\":2,\"step\":1,\"step_seconds\":-1}",
      "{\"v\":2,\"step\":1,\"mfu\":1e308}",
      "{\"v\":2,\"step\":1,\"time_unix\":-1e300}",
      "{\"v\":2,\"step\":1,\"tokens\":9223372036854775807}",
      "{\"v\":2,\"step\":1,\"model_flops\":" + std::string(39, '1') + "}",
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

TEST(RecordReader, the_end_of_an_endless_line_is_not_read) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/endless.jsonl";
  append_file(path, line_of(numbered(1)) + "\n");
  std::filesystem::resize_file(path, std::uintmax_t{200} << 30U);  // sparse
  RecordReader reader{path};
  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_LT(reader.offset(), std::int64_t{1} << 30U);
}

TEST(RecordReader, unknown_keys_are_ignored) {
  const auto read = parse_record(
      R"({"v":2,"novel":[1,{"a":2}],"step":3,"phases":{"forward":0.5,"dreaming":2},"more":{"x":[]},"rank":2})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 3);
  EXPECT_EQ(read->rank, 2);
  EXPECT_EQ(read->phases[static_cast<std::size_t>(Phase::forward)], Seconds{0.5});
}

}  // namespace
}  // namespace flopmeter
