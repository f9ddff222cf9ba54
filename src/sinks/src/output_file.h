// SPDX-License-Identifier: Apache-2.0
//
// Files of sinks: opened late, never through a link, not inherited by child programs, locked while
// the run lives, and written completely or not at all.
#pragma once

#include <flopmeter/core/result.h>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// A growing file.  Opened by the first append.  Not thread-safe.
class OutputFile {
 public:
  enum class Name : std::uint8_t {
    fresh,    ///< a file that did not exist: "x.1.log" if "x.log" exists
    replace,  ///< a new file in place of one that an earlier start wrote; any other file stays
  };

  OutputFile(std::string path, Name name, std::string header = {});
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile(OutputFile&&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Writes the header before the first text.  After a failure no part of `text` stays in a regular
  /// file.  A file that was deleted is created again; so is one whose descriptor the program
  /// closed: its number may be that of a file of the program now.
  Result<void> append(std::string_view text);
  /// Creates the file with its header if it does not exist.
  Result<void> touch() { return append({}); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  Result<void> open();
  /// Gives up a descriptor that refers to another file by now.
  void check_descriptor();
  Result<void> write_all(std::string_view text);

  std::string path_;
  Name name_;
  std::string header_;
  std::int64_t size_ = 0;
  int fd_ = -1;
  bool regular_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// New content of a file: a reader sees the old text or, after commit(), the new text, even after a
/// crash.
class FileReplacement {
 public:
  explicit FileReplacement(std::string path);
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  FileReplacement(FileReplacement&&) = delete;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  /// Adds `text` and empties it; the first failure is kept for commit().
  void take(std::string& text);
  Result<void> commit();

 private:
  std::string path_;
  std::string temporary_;  ///< empty: written in place
  int fd_ = -1;
  std::optional<Error> error_;
};

/// Creates an empty file that did not exist, and its parent directories: "x.1.json" if "x.json"
/// exists.
Result<std::string> claim_name(const std::string& path);

/// Creates `path` and its parent directories.
Result<void> make_directories(const std::string& path);

/// "cannot <what> <path>: <reason of errno>".
Error system_error(std::string_view what, std::string_view path, int code);

}  // namespace flopmeter
