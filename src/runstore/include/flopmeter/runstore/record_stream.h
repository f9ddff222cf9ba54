// SPDX-License-Identifier: Apache-2.0
//
// The record stream (records_<stamp>.rank<r>.jsonl): one JSON object per line and record, written
// and read here.
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// Version of the form of a record.
inline constexpr int record_schema = 2;

/// Writes the record as an object with all fields of step_fields(): unknown values are null, groups
/// are objects that contain only known values.  Ends the object unless `more` fields follow.
void write_record(JsonWriter& json, const StepRecord& record, bool more = false);

/// The inverse of write_record().  Empty if `line` is not a record of this schema.
std::optional<StepRecord> parse_record(std::string_view line);

/// Reads one stream forward while it grows or afterwards.  Keeps no file open between calls, and no
/// memory at the end of the file.  Not thread-safe.
class RecordReader {
 public:
  /// Starts at the first line that begins at or after byte `from`.
  explicit RecordReader(std::string path, std::int64_t from = 0);
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;
  RecordReader(RecordReader&&) = delete;
  RecordReader& operator=(RecordReader&&) = delete;
  ~RecordReader();

  /// The next complete record; empty at the end of the file.  An incomplete line is left for a
  /// later call; a damaged line is counted and skipped.
  std::optional<StepRecord> next();

  /// Lines that were not records.
  [[nodiscard]] std::int64_t damaged_lines() const;
  /// Bytes of the file that are done.
  [[nodiscard]] std::int64_t offset() const;
  /// Whether too many bytes had no line: the rest is not worth another reader.
  [[nodiscard]] bool gave_up() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopmeter
