// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/runstore/input_limits.h>
#include <flopmeter/runstore/run_layout.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace flopmeter {
namespace {

constexpr std::string_view rank_mark = ".rank";
constexpr std::size_t stamp_size = 15;

/// Whether `text` has the form 20240129_103000.
bool is_stamp(std::string_view text) {
  if (text.size() != stamp_size || text[8] != '_') return false;
  return std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) ==
         static_cast<std::ptrdiff_t>(stamp_size - 1);
}

std::string_view variable(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return entry.substr(name.size() + 1);
  }
  return {};
}

/// The id that the launcher gave the job, as a file name; empty if there is none.
std::string job_id(const char* const* environment) {
  constexpr std::size_t longest = 100;
  for (const std::string_view name : {"FLOPMETER_RUN_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"}) {
    std::string id{variable(environment, name).substr(0, longest)};
    if (id.empty() || (name == "TORCHELASTIC_RUN_ID" && id == "none")) continue;
    for (char& c : id) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
      if (!plain) c = '_';
    }
    if (id.find_first_not_of('.') != std::string::npos) return id;
  }
  return {};
}

/// Replaces the link in one step, so that there is always one.
void link_latest(const std::filesystem::path& root, const std::string& stamp) {
  const std::filesystem::path link = root / "latest";
  const std::filesystem::path fresh = root / (".latest." + std::to_string(getpid()));
  std::error_code code;
  if (std::filesystem::exists(std::filesystem::symlink_status(link, code)) &&
      !std::filesystem::is_symlink(link, code))
    return;  // a file of the user
  std::filesystem::remove(fresh, code);
  std::filesystem::create_directory_symlink(stamp, fresh, code);
  if (!code) std::filesystem::rename(fresh, link, code);
}

}  // namespace

std::string RunLayout::of_start(std::string_view prefix, std::string_view suffix) const {
  return directory_ + "/" + std::string{prefix} + stamp_ + std::string{suffix};
}

std::string RunLayout::of_rank(std::string_view prefix, std::string_view suffix) const {
  return of_start(prefix, rank_mark) + std::to_string(rank_) + std::string{suffix};
}

std::optional<RunLayout::RecordFile> RunLayout::parse_records(std::string_view file_name) {
  constexpr std::string_view prefix = "records_";
  constexpr std::string_view suffix = ".jsonl";
  if (!file_name.starts_with(prefix) || !file_name.ends_with(suffix)) return std::nullopt;
  file_name.remove_prefix(prefix.size());
  file_name.remove_suffix(suffix.size());
  const std::size_t mark = file_name.find(rank_mark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view number = file_name.substr(mark + rank_mark.size());
  const auto rank = parse_int(number.substr(0, number.find('.')));
  if (!rank || *rank < 0 || *rank > InputLimits::highest_rank) return std::nullopt;
  return RecordFile{std::string{file_name.substr(0, mark)}, static_cast<int>(*rank)};
}

std::string RunLayout::stamp_in(std::string_view file_name) {
  for (const std::string_view prefix :
       {"perf_metrics_", "perf_summary_", "records_", "op_profile_", "trace_"}) {
    if (!file_name.starts_with(prefix)) continue;
    const std::string_view stamp = file_name.substr(prefix.size(), stamp_size);
    if (is_stamp(stamp)) return std::string{stamp};
  }
  return {};
}

std::string stamp_of(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(std::floor(unix_seconds));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y%m%d_%H%M%S", &parts)};
}

std::string choose_run_directory(const std::string& named,
                                 int world_size,
                                 const char* const* environment,
                                 double unix_seconds) {
  if (!named.empty()) return named;
  const std::string root = "logs/perf_monitor";
  if (world_size > 1) {
    const std::string id = job_id(environment);
    return id.empty() ? root : root + "/" + id;
  }
  std::error_code code;
  std::filesystem::create_directories(root, code);
  for (int later = 0; later < 1000; ++later) {
    const std::string stamp = stamp_of(unix_seconds + later);
    const std::string path = root + "/" + stamp;
    const bool created = std::filesystem::create_directory(path, code);
    if (code) break;  // the first write reports it
    if (!created) continue;
    link_latest(root, stamp);
    return path;
  }
  return root + "/" + stamp_of(unix_seconds);
}

}  // namespace flopmeter
