// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace flopmeter {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }
  /// False, with errno set, if the last data could not be written.
  bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string error_text(int code) {
  std::array<char, 128> buffer{};
  return strerror_r(code, buffer.data(), buffer.size());
}

Error failed(std::string_view action, const std::string& path, const std::string& why) {
  return {ErrorCode::io_error,
          "cannot " + std::string{action} + " '" + printable(path) + "': " + why};
}

Error failed(std::string_view action, const std::string& path, int code) {
  Error error = failed(action, path, code == EINVAL ? "not a regular file" : error_text(code));
  if (code == ENOENT) error.code = ErrorCode::not_found;
  return error;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

int open_regular_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

Result<std::string> read_file(const std::string& path, std::size_t most) {
  const Descriptor file{open_regular_file(path)};
  if (file.get() < 0) return failed("read", path, errno);
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read", path, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > most)
      return failed("read", path, "larger than " + std::to_string(most >> 20U) + " MiB");
  }
}

std::optional<std::string> read_tail(const std::string& path, std::int64_t most) {
  const Descriptor file{open_regular_file(path)};
  if (file.get() < 0) return std::nullopt;
  const std::int64_t size = lseek(file.get(), 0, SEEK_END);
  const std::int64_t from = std::max<std::int64_t>(0, size - most);
  std::string text(static_cast<std::size_t>(std::max<std::int64_t>(0, size - from)), '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), from);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::unique_ptr<char, void (*)(void*)> real{realpath(path.c_str(), nullptr), std::free};
  const std::string target = real ? real.get() : path;
  struct stat old {};
  const bool exists = lstat(target.c_str(), &old) == 0;  // a link only if it leads nowhere
  if (exists && !S_ISREG(old.st_mode)) return failed("write", path, EINVAL);
  const std::string temporary = target + "." + std::to_string(getpid()) + ".tmp";
  unlink(temporary.c_str());  // left by a process that was killed
  Descriptor file{
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666)};
  if (file.get() < 0) return failed("write", path, errno);
  const bool written = (!exists || fchmod(file.get(), old.st_mode & 07777U) == 0) &&
                       write_all(file.get(), text) && file.close() &&
                       rename(temporary.c_str(), target.c_str()) == 0;
  if (written) return {};
  const int code = errno;
  unlink(temporary.c_str());
  return failed("write", path, code);
}

bool is_standard_stream(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && (static_cast<unsigned>(flags) & FD_CLOEXEC) == 0;
}

}  // namespace flopmeter
