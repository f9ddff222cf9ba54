// SPDX-License-Identifier: Apache-2.0
//
// Files that users and other programs may have changed: bounded reading and atomic replacement.
#pragma once

#include <flopmeter/core/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// Opens a regular file for reading.  -1, with errno set, if it cannot be opened or is a device, a
/// pipe, or a socket.  Never blocks.
int open_regular_file(const std::string& path);

/// All bytes of a regular file.  An error if it has more than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most);

/// Up to `most` bytes at the end of a regular file; empty if there is none.
std::optional<std::string> read_tail(const std::string& path, std::int64_t most);

/// Writes a temporary file and renames it, so that readers never see a partial file.  Follows links
/// and keeps the mode of an existing file.  An error if the path is not a regular file.
Result<void> replace_file(const std::string& path, std::string_view text);

/// Whether 1 or 2 is a stream that the process was started with.  A closed one may belong to a file
/// of the program by now, which a child process would not inherit.
bool is_standard_stream(int fd);

}  // namespace flopmeter
