// SPDX-License-Identifier: Apache-2.0
#include "line_reader.h"

#include <flopmeter/core/files.h>
#include <flopmeter/runstore/input_limits.h>

#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace flopmeter {
namespace {

constexpr std::size_t chunk_bytes = 256 << 10U;

}  // namespace

LineReader::LineReader(std::string path, std::size_t longest, std::int64_t from)
    : path_(std::move(path)), longest_(longest) {
  if (from <= 0) return;
  offset_ = from - 1;  // the end of the previous line, if a line begins at `from`
  skipping_ = true;
}

void LineReader::drop(std::size_t bytes) {
  begin_ += bytes;
  offset_ += static_cast<std::int64_t>(bytes);
}

bool LineReader::gave_up() const {
  return skipped_bytes_ > InputLimits::skipped_bytes;
}

/// Adds what the file has after the buffer; false if that is nothing.
bool LineReader::fill() {
  if (end_ - begin_ >= longest_) {
    skipped_bytes_ += static_cast<std::int64_t>(end_ - begin_);
    drop(end_ - begin_);
    skipped_ += skipping_ ? 0 : 1;
    skipping_ = true;
    if (gave_up()) return false;
  }
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
            buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  buffer_.resize(end_ + chunk_bytes + simdjson::SIMDJSON_PADDING);
  const int fd = open_regular_file(path_);
  if (fd < 0) return false;
  ssize_t count = 0;
  do {
    count =
        pread(fd, buffer_.data() + end_, chunk_bytes, offset_ + static_cast<std::int64_t>(end_));
  } while (count < 0 && errno == EINTR);
  close(fd);
  if (count <= 0) return false;
  end_ += static_cast<std::size_t>(count);
  return true;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = begin_;
  while (true) {
    const void* found =
        searched == end_ ? nullptr : std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (found == nullptr) {
      const std::size_t seen = end_ - begin_;
      if (!fill()) {
        buffer_ = {};
        begin_ = end_ = 0;  // an incomplete line is read again later
        return std::nullopt;
      }
      searched = begin_ + std::min(seen, end_ - begin_);
      continue;
    }
    const auto stop = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
    const std::string_view line{buffer_.data() + begin_, stop - begin_};
    drop(line.size() + 1);
    searched = begin_;
    if (!std::exchange(skipping_, false)) return line;
  }
}

}  // namespace flopmeter
