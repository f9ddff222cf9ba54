// SPDX-License-Identifier: Apache-2.0
#include "input_file.h"

#include "inflate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace flopmeter {
namespace {

/// A file descriptor, closed at the end of its life.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

Error failed(const std::string& path) {
  const int reason = errno;
  return {reason == ENOENT ? ErrorCode::not_found : ErrorCode::io_error,
          "cannot read " + path + ": " + std::generic_category().message(reason)};
}

Result<std::vector<char>> read_all(int descriptor, const std::string& path) {
  std::vector<char> text;
  std::array<char, 65536> block{};
  for (;;) {
    const ssize_t got = read(descriptor, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path);
    if (got == 0) return text;
    text.insert(text.end(), block.data(), block.data() + got);
  }
}

Result<InputFile> open_raw(const std::string& path) {
  // Without O_NONBLOCK the call waits for the writer of a named pipe.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) return failed(path);
  if (S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::invalid_argument, path + " is a directory, not a trace"};
  }
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return Error{ErrorCode::invalid_argument, path + " is neither a file nor a pipe"};
  }
  InputFile input;
  if (S_ISFIFO(status.st_mode)) {
    if (fcntl(file.number(), F_SETFL, O_RDONLY) != 0) return failed(path);
    Result<std::vector<char>> text = read_all(file.number(), path);
    if (!text) return text.error();
    input.read = std::move(*text);
    input.text = {input.read.data(), input.read.size()};
    return input;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return input;
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) return failed(path);
  madvise(address, size, MADV_SEQUENTIAL);
  input.memory = MappedMemory{address, size};
  input.text = {input.memory.data(), size};
  return input;
}

}  // namespace

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (address_ != nullptr) munmap(address_, size_);
}

void MappedMemory::release(const char* from, const char* to) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t first = (static_cast<std::size_t>(from - data()) + page - 1) / page * page;
  const std::size_t last = static_cast<std::size_t>(to - data()) / page * page;
  if (first < last) madvise(data() + first, last - first, MADV_DONTNEED);
}

Result<InputFile> open_input(const std::string& path) {
  Result<InputFile> raw = open_raw(path);
  if (!raw) return raw;
  if (!raw->text.starts_with("\x1f\x8b")) return raw;
  return inflate_gzip(raw->text);
}

}  // namespace flopmeter
