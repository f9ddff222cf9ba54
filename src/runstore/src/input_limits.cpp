// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/runstore/input_limits.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace flopmeter {

int open_regular_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

std::optional<std::string> read_tail(const std::string& path, std::int64_t most) {
  const int fd = open_regular_file(path);
  if (fd < 0) return std::nullopt;
  std::string text;
  try {
    const std::int64_t size = lseek(fd, 0, SEEK_END);
    const std::int64_t from = std::max<std::int64_t>(0, size - most);
    text.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, size - from)));
    const ssize_t count = pread(fd, text.data(), text.size(), from);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
  return text;
}

}  // namespace flopmeter
