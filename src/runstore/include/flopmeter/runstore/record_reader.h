// SPDX-License-Identifier: Apache-2.0
//
// RecordReader: reads a record stream (records_<stamp>.rank<r>.jsonl) back, the inverse of what the
// monitor writes, while it grows or afterwards.
#pragma once

#include <flopmeter/core/step_record.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// Reads one file forwards.  Holds no open file between calls, and no memory once it has
/// reached the end.  Not thread-safe; one reader a thread.
class RecordReader {
 public:
  /// From the first line that begins at or after byte `from`.
  explicit RecordReader(std::string path, std::int64_t from = 0);
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;
  RecordReader(RecordReader&& other) noexcept;
  RecordReader& operator=(RecordReader&& other) noexcept;
  ~RecordReader();

  /// The next whole record; empty at the end of what is written so far.  A line without its end is
  /// left for a later call, which finds it finished; a damaged line is counted and passed over.
  std::optional<StepRecord> next();

  /// Lines that were no record.
  [[nodiscard]] std::int64_t damaged_lines() const;
  /// Bytes of the file that are done with.
  [[nodiscard]] std::int64_t offset() const;
  [[nodiscard]] const std::string& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One line of a record stream, as write_record() and the JSONL sink write it.  FLOPs of the model
/// by dtype are not stored; where all work ran in one dtype they are put there again.  Empty where
/// the line is no record, or one of a later schema.
std::optional<StepRecord> parse_record(std::string_view line);

}  // namespace flopmeter
