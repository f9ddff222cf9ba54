// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/loader_activity.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
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

}  // namespace flopmeter
