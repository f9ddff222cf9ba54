// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/cpu_info.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace flopmeter {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

std::string_view trim(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file{path};
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  return std::string{trim(text)};
}

std::optional<double> read_number(const std::string& path) {
  const auto text = read_text(path);
  return text ? parse_double(*text) : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Processors in /proc/cpuinfo: number to "key : value" lines.
std::map<int, Fields> processors(std::string_view cpuinfo) {
  std::map<int, Fields> all;
  Fields* current = nullptr;
  for (const auto line : split(cpuinfo, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (key == "processor") {
      const auto number = parse_int(value);
      current = number ? &all[static_cast<int>(*number)] : nullptr;
    } else if (current != nullptr) {
      current->emplace(key, value);
    }
  }
  return all;
}

std::string field(const Fields& fields, std::string_view key) {
  const auto at = fields.find(key);
  return at == fields.end() ? std::string{} : at->second;
}

/// A decimal or, with 0x, hexadecimal number.
std::optional<int> number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  int value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (text.empty() || end.ec != std::errc{} || end.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Parses the affinity mask of /proc/self/status: "0-3,8" becomes {0, 1, 2, 3, 8}.
std::set<int> cpu_list(std::string_view text) {
  constexpr int largest = 1 << 20;
  std::set<int> cpus;
  for (const auto part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last > largest) continue;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

std::optional<std::set<int>> allowed_cpus(const std::string& root) {
  const auto status = read_text(root + "/proc/self/status");
  if (!status) return std::nullopt;
  constexpr std::string_view key = "Cpus_allowed_list:";
  for (const auto line : split(*status, '\n')) {
    if (line.starts_with(key)) return cpu_list(trim(line.substr(key.size())));
  }
  return std::nullopt;
}

/// "max 100000" or "150000 100000": number of CPUs that a cgroup (v2) may use.
std::optional<double> quota(const std::optional<std::string>& cpu_max) {
  if (!cpu_max) return std::nullopt;
  const auto parts = split(*cpu_max, ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto time = parse_double(parts[0]);  // "max" is not a number: no limit
  const auto period = parse_double(parts[1]);
  return time && period && *time > 0 && *period > 0 ? std::optional{*time / *period} : std::nullopt;
}

void lower_to(std::optional<double>& limit, std::optional<double> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

/// The tightest quota of this process's cgroup and its ancestors.
std::optional<double> cgroup_limit(const std::string& root) {
  std::optional<double> limit;
  const std::string text = read_text(root + "/proc/self/cgroup").value_or("");
  for (const auto line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const auto list = split(controllers, ',');
    const bool v1 = std::find(list.begin(), list.end(), "cpu") != list.end();
    if (!v1 && !controllers.empty()) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (v1 ? "/" + std::string{controllers} : "");
    // A container may see its group as the root of the tree while the path is that of the host.
    // Skip folders that do not exist.
    for (std::string path{line.substr(second + 1)};; path.erase(path.rfind('/'))) {
      const std::string folder = mount + (path == "/" ? "" : path);
      if (v1) {
        const auto time = read_text(folder + "/cpu.cfs_quota_us");
        const auto period = read_text(folder + "/cpu.cfs_period_us");
        if (time && period) lower_to(limit, quota(*time + " " + *period));
      } else {
        lower_to(limit, quota(read_text(folder + "/cpu.max")));
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return limit;
}

/// Physical core of a processor; two threads of one core return the same pair.
std::pair<std::string, std::string> core_of(const std::string& root,
                                            int cpu,
                                            const Fields& fields) {
  const std::string topology =
      root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  const auto package = read_text(topology + "physical_package_id");
  const auto core = read_text(topology + "core_id");
  if (package && core) {
    // core_id is unique only within a die, if the kernel reports dies.
    const std::string die = read_text(topology + "die_id").value_or("0");
    return {*package + "." + die, *core};
  }
  const std::string core_id = field(fields, "core id");
  return {field(fields, "physical id"), core_id.empty() ? "cpu" + std::to_string(cpu) : core_id};
}

/// The 2.1e9 of "Intel(R) Xeon(R) CPU @ 2.10GHz".
std::optional<double> clock_in_name(std::string_view name) {
  const std::size_t at = name.find("@ ");
  if (at == std::string_view::npos || !name.ends_with("GHz")) return std::nullopt;
  const auto ghz = parse_double(name.substr(at + 2, name.size() - at - 5));
  return ghz && *ghz > 0 ? std::optional{*ghz * 1e9} : std::nullopt;
}

/// Mean of `read` over the processors; empty if a value is missing.
template <class Read>
std::optional<double> mean(const std::map<int, Fields>& cpus, Read read) {
  double sum = 0;
  for (const auto& [cpu, fields] : cpus) {
    const std::optional<double> value = read(cpu, fields);
    if (!value || !(*value > 0)) return std::nullopt;
    sum += *value;
  }
  return cpus.empty() ? std::nullopt : std::optional{sum / static_cast<double>(cpus.size())};
}

void read_clock(CpuInfo& info, const std::string& root, const std::map<int, Fields>& cpus) {
  const auto khz = mean(cpus, [&](int cpu, const Fields&) {
    return read_number(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/cpufreq/cpuinfo_max_freq");
  });
  const bool virtual_machine =
      std::find(info.flags.begin(), info.flags.end(), "hypervisor") != info.flags.end();
  if (khz) {
    info.clock_hertz = *khz * 1e3;
    info.clock_source = "cpufreq maximum";
  } else if (const auto named = clock_in_name(info.model_name)) {
    info.clock_hertz = named;
    info.clock_source = "model name; boost clock unknown";
  } else if (virtual_machine) {
    const auto mhz = mean(
        cpus, [](int, const Fields& fields) { return parse_double(field(fields, "cpu MHz")); });
    if (!mhz) return;
    info.clock_hertz = *mhz * 1e6;
    info.clock_source = "cpu MHz of a virtual machine; boost clock unknown";
  }
}

}  // namespace

Result<CpuInfo> read_cpu_info(const std::string& root) {
  const std::string path = root + "/proc/cpuinfo";
  const auto text = read_text(path);
  if (!text)
    return Error{ErrorCode::io_error, path + ": cannot be read; the peak of the CPU is unknown"};
  std::map<int, Fields> cpus = processors(*text);
  if (const auto allowed = allowed_cpus(root)) {
    std::erase_if(cpus, [&](const auto& entry) { return !allowed->contains(entry.first); });
  }
  if (cpus.empty())
    return Error{ErrorCode::parse_error,
                 path + ": contains no processor that this process may use"};

  CpuInfo info;
  const Fields& first = cpus.begin()->second;
  const bool is_arm = first.contains("CPU implementer");
  info.model_name = field(first, "model name");
  info.vendor = field(first, is_arm ? "CPU implementer" : "vendor_id");
  info.family = number(field(first, "cpu family"));
  info.model = number(field(first, is_arm ? "CPU part" : "model"));
  const std::string flags = field(first, is_arm ? "Features" : "flags");
  for (const auto flag : split(flags, ' ')) info.flags.emplace_back(flag);

  std::set<std::pair<std::string, std::string>> cores;
  for (const auto& [cpu, fields] : cpus) cores.insert(core_of(root, cpu, fields));
  info.cores = static_cast<double>(cores.size());
  lower_to(info.cores, cgroup_limit(root));
  read_clock(info, root, cpus);
  return info;
}

}  // namespace flopmeter
