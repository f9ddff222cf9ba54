// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/loader_activity.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace flopmeter {
namespace {

constexpr std::size_t most_children = 32;

using Buffer = std::array<char, 1024>;

std::string_view read_file(const std::string& path, Buffer& buffer) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  close(fd);
  return size > 0 ? std::string_view{buffer.data(), static_cast<std::size_t>(size)}
                  : std::string_view{};
}

/// State in "123 (name) R 1 …"; the name may contain brackets, so search for the last one.
std::optional<bool> runs(const std::string& path) {
  Buffer buffer{};
  const std::string_view text = read_file(path, buffer);
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos || end + 2 >= text.size()) return std::nullopt;
  return text[end + 2] == 'R';
}

}  // namespace

std::optional<bool> thread_or_children_run(pid_t thread, const std::string& root) {
  const std::string own = root + "/self/task/" + std::to_string(thread);
  const auto self = runs(own + "/stat");
  if (!self || *self) return self;
  Buffer buffer{};
  std::string_view children = read_file(own + "/children", buffer);
  for (std::size_t i = 0; i < most_children && !children.empty(); ++i) {
    const std::size_t end = children.find(' ');
    const std::string_view pid = children.substr(0, end);
    if (!pid.empty() && runs(root + "/" + std::string{pid} + "/stat").value_or(false)) return true;
    children.remove_prefix(end == std::string_view::npos ? children.size() : end + 1);
  }
  return false;
}

std::optional<std::uintptr_t> futex_of(pid_t thread, const std::string& root) {
  Buffer buffer{};
  const std::string_view text =
      read_file(root + "/self/task/" + std::to_string(thread) + "/syscall", buffer);
  if (text.empty()) return std::nullopt;
  // "running", or the number of a system call and its arguments in hexadecimal.
  long number = 0;
  const auto call = std::from_chars(text.begin(), text.end(), number);
  if (call.ec != std::errc{} || number != SYS_futex) return 0;
  constexpr std::string_view before = " 0x";
  const std::string_view rest = text.substr(static_cast<std::size_t>(call.ptr - text.begin()));
  std::uintptr_t address = 0;
  if (rest.starts_with(before))
    std::from_chars(rest.begin() + before.size(), rest.end(), address, 16);
  return address;
}

}  // namespace flopmeter
