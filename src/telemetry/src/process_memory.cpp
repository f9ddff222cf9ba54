// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/process_memory.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace flopmeter {
namespace {

/// Bytes of "VmRSS:      1234 kB".
std::optional<std::int64_t> line_bytes(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789\n"), rest.size()));
  const auto kib = parse_int(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

}  // namespace

ProcessMemory read_process_memory(const std::string& root) {
  std::array<char, 4096> buffer{};
  const int fd = open((root + "/self/status").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (size <= 0) return {};
  const std::string_view text{buffer.data(), static_cast<std::size_t>(size)};
  return {.rss = line_bytes(text, "\nVmRSS:"), .rss_peak = line_bytes(text, "\nVmHWM:")};
}

}  // namespace flopmeter
