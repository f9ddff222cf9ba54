// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/host_load.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::int64_t machine_interval_ns = 100'000'000;

/// The first kilobytes of a file, which contain the counters.
std::string read_begin(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 4096> buffer{};
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  close(fd);
  return size > 0 ? std::string{buffer.data(), static_cast<std::size_t>(size)} : std::string{};
}

/// The number at a place of a line of numbers separated by spaces, from 0.
std::optional<double> number_at(std::string_view line, std::size_t place) {
  line = line.substr(0, line.find('\n'));
  for (std::size_t i = 0; !line.empty(); ++i) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t end = std::min(line.find(' '), line.size());
    if (i == place) return parse_double(line.substr(0, end));
    line.remove_prefix(end);
  }
  return std::nullopt;
}

/// The number after "key " at the start of a line.
std::optional<double> value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return number_at(line, 1);
  }
  return std::nullopt;
}

/// cpu.stat of the process' cgroup, of either version; the root of a container is the mount itself.
std::string find_cgroup(const std::string& root) {
  const std::string lines = read_begin(root + "/proc/self/cgroup");
  for (std::size_t at = 0; at < lines.size();
       at = std::min(lines.find('\n', at), lines.size()) + 1) {
    const std::string line = lines.substr(at, lines.find('\n', at) - at);
    const std::size_t kind = line.find(':');
    const std::size_t path = line.find(':', kind + 1);
    if (kind == std::string::npos || path == std::string::npos) continue;
    const std::string controllers = "," + line.substr(kind + 1, path - kind - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (unified ? "" : "/cpu");
    for (const std::string& folder : {mount + line.substr(path + 1), mount}) {
      if (access((folder + "/cpu.stat").c_str(), R_OK) == 0) return folder + "/cpu.stat";
    }
  }
  return {};
}

std::optional<Seconds> difference(const std::optional<double>& now, std::optional<double>& before) {
  const auto previous = std::exchange(before, now);
  if (!now || !previous) return std::nullopt;
  return Seconds{std::max(*now - *previous, 0.0)};
}

}  // namespace

HostLoad::HostLoad(pid_t thread, std::string root)
    : schedstat_(root + "/proc/self/task/" + std::to_string(thread) + "/schedstat"),
      cgroup_(find_cgroup(root)),
      stat_(root + "/proc/stat") {
  last_ = {run_queue(), throttled(), stolen()};
}

std::optional<double> HostLoad::run_queue() const {
  const auto nanoseconds = number_at(read_begin(schedstat_), 1);
  return nanoseconds ? std::optional{*nanoseconds / 1e9} : std::nullopt;
}

std::optional<double> HostLoad::throttled() const {
  if (cgroup_.empty()) return std::nullopt;
  const std::string text = read_begin(cgroup_);
  if (const auto microseconds = value_of(text, "throttled_usec")) return *microseconds / 1e6;
  const auto nanoseconds = value_of(text, "throttled_time");
  return nanoseconds ? std::optional{*nanoseconds / 1e9} : std::nullopt;
}

std::optional<double> HostLoad::stolen() const {
  constexpr std::size_t steal = 8;  // user nice system idle iowait irq softirq steal, after "cpu"
  const auto ticks = number_at(read_begin(stat_), steal);
  const auto processors = static_cast<double>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ticks ? std::optional{*ticks / per_second / processors} : std::nullopt;
}

HostWait HostLoad::since_last(std::int64_t now_ns) {
  HostWait wait;
  wait.run_queue = difference(run_queue(), last_.run_queue);
  const double interval = static_cast<double>(now_ns - read_ns_) / 1e9;
  if (read_ns_ != 0 && now_ns - read_ns_ < machine_interval_ns) return wait;
  wait.throttled = difference(throttled(), last_.throttled);
  // The kernel sums over the processors of the cgroup; one thread cannot wait longer than the time.
  if (wait.throttled && read_ns_ != 0)
    wait.throttled->value = std::min(wait.throttled->value, interval);
  wait.stolen = difference(stolen(), last_.stolen);
  read_ns_ = now_ns;
  return wait;
}

}  // namespace flopmeter
