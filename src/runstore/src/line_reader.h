// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Reads the lines of a regular file that may still grow.  Keeps no file open between calls, and no
/// memory at the end of the file.
class LineReader {
 public:
  /// Starts at the first line that begins at or after byte `from`; skips lines longer than
  /// `longest` bytes.
  LineReader(std::string path, std::size_t longest, std::int64_t from = 0);

  /// The next complete line without its end, followed by SIMDJSON_PADDING readable bytes; valid
  /// until the next call.
  std::optional<std::string_view> next();

  [[nodiscard]] std::int64_t skipped_lines() const { return skipped_; }
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  /// Whether too many bytes had no line: the rest is not read.
  [[nodiscard]] bool gave_up() const;

 private:
  bool fill();
  void drop(std::size_t bytes);

  std::string path_;
  std::size_t longest_;
  std::vector<char> buffer_;  ///< unread bytes from begin_ to end_, then padding
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t offset_ = 0;  ///< of begin_ in the file
  std::int64_t skipped_ = 0;
  bool skipping_ = false;
  std::int64_t skipped_bytes_ = 0;  ///< inside a line that is not returned
};

}  // namespace flopmeter
