// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <flopmeter/core/text.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace flopmeter {
namespace {

constexpr int common_flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
constexpr mode_t file_mode = 0666;  // before the umask
constexpr int most_names = 1000;

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// "a/x.log" and 2 as "a/x.2.log".
std::string numbered(const std::string& path, int number) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.rfind('.');
  const bool has_dot = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  const std::size_t at = has_dot ? dot : path.size();
  return path.substr(0, at) + "." + std::to_string(number) + path.substr(at);
}

/// Writes all of `text`; the number of bytes that reached the file is added to `done`.
int write_fully(int fd, std::string_view text, std::int64_t& done) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    done += count;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// Unique among all processes.
std::string temporary_name(const std::string& path) {
  static constinit std::atomic<unsigned> counter{0};
  return path + "." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1)) +
         ".tmp";
}

/// Opens an empty file that no process writes: start_run() creates such files to claim a name.
int open_claimed(const std::string& path) {
  const int fd = ::open(path.c_str(), common_flags | O_APPEND);
  if (fd < 0) return -1;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0 &&
      flock(fd, LOCK_EX | LOCK_NB) == 0)
    return fd;
  ::close(fd);
  return -1;
}

/// Opens a new file under `path` or the first free number; `path` becomes its name.  Negative if it
/// failed.  `claimed` accepts an empty file that no process writes.
int open_fresh(std::string& path, bool claimed) {
  const std::string wanted = path;
  int fd = -1;
  for (int n = 1; n < most_names; ++n) {
    fd = ::open(path.c_str(), common_flags | O_CREAT | O_EXCL | O_APPEND, file_mode);
    if (fd >= 0 || errno != EEXIST) break;
    if (claimed) fd = open_claimed(path);
    if (fd >= 0) break;
    path = numbered(wanted, n);
  }
  if (fd < 0) path = wanted;
  return fd;
}

/// Whether there is no file, or one with the same header, apart from its digits, that no process
/// writes any more: another program may use the same name in a shared folder.
bool is_replaceable(const std::string& path, std::string_view header) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno == ENOENT || errno == ELOOP;
  std::string start(header.size(), '\0');
  const ssize_t count = ::read(fd, start.data(), start.size());
  const bool free = flock(fd, LOCK_SH | LOCK_NB) == 0;
  ::close(fd);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return free && count == static_cast<ssize_t>(header.size()) &&
         std::equal(start.begin(), start.end(), header.begin(), [&](char a, char b) {
           return a == b || (is_digit(a) && is_digit(b));
         });
}

}  // namespace

Error system_error(std::string_view what, std::string_view path, int code) {
  std::array<char, 128> buffer{};
  return {ErrorCode::io_error,
          "cannot " + std::string{what} + " " + printable(path) + ": " +
              strerror_r(code, buffer.data(), buffer.size())};
}

Result<void> make_directories(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT || path.empty()) return system_error("create directory", path, errno);
  if (const auto above = make_directories(parent(path)); !above) return above;
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return system_error("create directory", path, errno);
}

Result<std::string> claim_name(const std::string& path) {
  if (const auto made = make_directories(parent(path)); !made) return made.error();
  std::string name = path;
  const int fd = open_fresh(name, false);
  if (fd < 0) return system_error("create", path, errno);
  ::close(fd);
  return name;
}

OutputFile::OutputFile(std::string path, Name name, std::string header)
    : path_(std::move(path)), name_(name), header_(std::move(header)) {}

OutputFile::~OutputFile() {
  check_descriptor();
  if (fd_ >= 0) ::close(fd_);
}

Result<void> OutputFile::open() {
  if (const auto made = make_directories(parent(path_)); !made) return made;
  struct stat info {};
  if (lstat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
    fd_ = ::open(path_.c_str(),
                 common_flags);  // a device or a pipe: used as it is, never blocks
  } else if (name_ == Name::replace && is_replaceable(path_, header_)) {
    const std::string temporary = temporary_name(path_);
    unlink(temporary.c_str());
    fd_ = ::open(temporary.c_str(), common_flags | O_CREAT | O_EXCL | O_APPEND, file_mode);
    if (fd_ >= 0 && rename(temporary.c_str(), path_.c_str()) != 0) {
      const int code = errno;
      unlink(temporary.c_str());
      ::close(std::exchange(fd_, -1));
      errno = code;
    }
  } else {
    fd_ = open_fresh(path_, true);
  }
  if (fd_ < 0) return system_error("open", path_, errno);
  regular_ = fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  if (regular_)
    flock(fd_, LOCK_EX | LOCK_NB);  // marks the file as live for the cleanup of another run
  size_ = 0;
  return {};
}

Result<void> OutputFile::write_all(std::string_view text) {
  std::int64_t size = size_;
  const int code = write_fully(fd_, text, size);
  if (code == 0) {
    size_ = size;
    return {};
  }
  // An incomplete line would damage the next one.
  if (regular_ && size != size_ && ftruncate(fd_, size_) != 0) size_ = size;
  return system_error("write", path_, code);
}

void OutputFile::check_descriptor() {
  if (fd_ < 0) return;
  struct stat info {};
  if (fstat(fd_, &info) != 0 || info.st_dev != device_ || info.st_ino != inode_) {
    fd_ = -1;  // closed by the program; not ours to close
  } else if (regular_ && info.st_nlink == 0) {
    ::close(std::exchange(fd_, -1));
  }
}

Result<void> OutputFile::append(std::string_view text) {
  check_descriptor();
  if (fd_ < 0) {
    if (const auto opened = open(); !opened) return opened;
  }
  if (size_ == 0 && !header_.empty()) {
    if (const auto head = write_all(header_); !head) return head;
  }
  return text.empty() ? Result<void>{} : write_all(text);
}

FileReplacement::FileReplacement(std::string path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  if (const auto made = make_directories(parent(path_)); !made) {
    error_ = made.error();
    return;
  }
  struct stat info {};
  if (lstat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
    temporary_.clear();  // a device or a pipe is written, not replaced
    fd_ = ::open(path_.c_str(), common_flags);
  } else {
    unlink(temporary_.c_str());
    fd_ = ::open(temporary_.c_str(), common_flags | O_CREAT | O_EXCL, file_mode);
  }
  if (fd_ < 0) error_ = system_error("create", path_, errno);
}

FileReplacement::~FileReplacement() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileReplacement::take(std::string& text) {
  std::int64_t done = 0;
  const int code = error_ ? 0 : write_fully(fd_, text, done);
  if (code != 0) error_ = system_error("write", path_, code);
  text.clear();
}

Result<void> FileReplacement::commit() {
  if (error_) return *error_;
  if (temporary_.empty()) return {};
  if (fdatasync(fd_) != 0) return system_error("write", path_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return system_error("replace", path_, errno);
  ::close(std::exchange(fd_, -1));
  const int directory = ::open(parent(path_).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (directory >= 0) {
    fsync(directory);
    ::close(directory);
  }
  return {};
}

}  // namespace flopmeter
