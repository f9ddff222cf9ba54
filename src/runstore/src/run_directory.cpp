// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/runstore/input_limits.h>
#include <flopmeter/runstore/record_stream.h>
#include <flopmeter/runstore/run_directory.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/runstore/run_metadata_json.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <deque>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>

namespace flopmeter {
namespace {

/// Whether the first line of a stream is a record of another schema.
bool is_outdated(const std::string& path) {
  constexpr std::int64_t first_bytes = 32;
  const int fd = open_regular_file(path);
  if (fd < 0) return false;
  std::string begin(first_bytes, '\0');
  const ssize_t count = pread(fd, begin.data(), begin.size(), 0);
  close(fd);
  begin.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  std::erase(begin, ' ');  // programs that rewrite JSON add them
  return begin.starts_with("{\"v\":") &&
         !begin.starts_with("{\"v\":" + std::to_string(record_schema) + ",");
}

/// Why a stream that is not empty has no record; empty if it has one.
std::string damage_of(const std::string& path) {
  RecordReader reader{path};
  if (reader.next() || reader.damaged_lines() == 0) return {};
  if (is_outdated(path)) return printable(path) + " is of another version of flopmeter";
  return printable(path) + " has no readable record: " + std::to_string(reader.damaged_lines()) +
         " damaged lines";
}

Error outdated(const std::string& path, const std::string& why) {
  return Error{ErrorCode::unsupported,
               printable(path) + " cannot be read: " + why + "; run the training again"};
}

/// The newest `most` records of a stream that no later start repeated.  Reads only as much of its
/// end as needed.  Lowers `done_later` to the first step of the stream if it read all of it.
std::deque<StepRecord> newest_records(const std::string& path,
                                      std::size_t most,
                                      bool all,
                                      std::int64_t& done_later) {
  constexpr std::int64_t bytes_a_record = 2048;
  std::error_code code;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, code));
  if (code) return {};
  auto records = static_cast<std::int64_t>(std::min<std::size_t>(most, 1U << 30U));
  while (true) {
    const std::int64_t from = std::max<std::int64_t>(0, size - records * bytes_a_record);
    std::deque<StepRecord> window;
    std::int64_t first = done_later;
    RecordReader reader{path, from};
    while (const auto record = reader.next()) {
      first = std::min(first, record->step);
      if (record->step >= done_later || (!all && record->tag != StepTag::train)) continue;
      window.push_back(*record);
      if (window.size() > most) window.pop_front();
    }
    if (from > 0 && window.size() < most) {
      records *= 8;
      continue;
    }
    done_later = first;
    return window;
  }
}

/// Runs below a directory, those named by a stamp newest last, for a message; "" if there are none.
std::string runs_below(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr std::size_t most_entries = 10'000;
  constexpr std::size_t most_names = 10;
  constexpr int deepest = 3;
  std::vector<std::string> names;
  std::error_code code;
  fs::recursive_directory_iterator entry{path, fs::directory_options::skip_permission_denied, code};
  for (std::size_t i = 0; !code && i < most_entries && entry != fs::recursive_directory_iterator{};
       entry.increment(code), ++i) {
    const std::string folder = entry->path().parent_path().string();
    if (entry->path() == RunLayout::metadata_in(folder)) names.push_back(folder);
    if (entry.depth() == deepest) entry.disable_recursion_pending();
  }
  std::sort(names.begin(), names.end());
  const std::size_t hidden = names.size() > most_names ? names.size() - most_names : 0;
  std::string text = hidden > 0 ? std::to_string(hidden) + " older, " : "";
  for (std::size_t i = hidden; i < names.size(); ++i)
    text += (i > hidden ? ", " : "") + printable(names[i]);
  return text;
}

}  // namespace

std::vector<int> RunDirectory::ranks() const {
  std::vector<int> found;
  for (const RankFile& file : files) {
    if (found.empty() || found.back() != file.rank) found.push_back(file.rank);
  }
  return found;
}

std::vector<RankFile> RunDirectory::files_of(int rank) const {
  const auto [first, last] = std::equal_range(
      files.begin(), files.end(), RankFile{.rank = rank}, [](const RankFile& a, const RankFile& b) {
        return a.rank < b.rank;
      });
  return {first, last};
}

std::string default_run_directory() {
  const std::filesystem::path root = "logs/perf_monitor";
  std::error_code code;
  return (std::filesystem::exists(root / "latest", code) ? root / "latest" : root).string();
}

Result<RunDirectory> open_run(const std::string& path) {
  namespace fs = std::filesystem;
  RunDirectory run;
  run.path = path;
  std::error_code code;
  fs::directory_iterator entry{path, code};
  if (code)
    return Error{
        code == std::errc::no_such_file_or_directory ? ErrorCode::not_found : ErrorCode::io_error,
        "cannot read the run directory " + printable(path) + ": " + code.message()};
  for (; !code && entry != fs::directory_iterator{}; entry.increment(code)) {
    if (run.files.size() == InputLimits::files) break;
    const auto file = RunLayout::parse_records(entry->path().filename().string());
    if (!file) continue;
    if (entry->is_regular_file(code)) {
      run.files.push_back({file->rank, file->stamp, entry->path().string()});
    } else {
      run.note = printable(entry->path().string()) + " is not read: not a regular file";
    }
  }
  std::sort(run.files.begin(), run.files.end(), [](const RankFile& a, const RankFile& b) {
    return std::tie(a.rank, a.stamp, a.path) < std::tie(b.rank, b.stamp, b.path);
  });
  const auto is_unreadable = [](const RankFile& file) {
    return access(file.path.c_str(), R_OK) != 0;
  };
  if (const auto file = std::find_if(run.files.begin(), run.files.end(), is_unreadable);
      file != run.files.end())
    return Error{ErrorCode::io_error,
                 "cannot read " + printable(file->path) +
                     ": no permission; run as the user who started the training"};
  if (run.note.empty() && !run.files.empty()) run.note = damage_of(run.files.front().path);
  auto metadata = read_run_metadata(path);
  if (metadata) {
    run.metadata = *std::move(metadata);
    return run;
  }
  if (metadata.error().code == ErrorCode::unsupported)
    return outdated(path, metadata.error().message);
  if (run.files.empty()) {
    // A start without a training step has a folder, but no files.
    if (fs::path{path}.filename() == "latest" && fs::is_symlink(path, code)) {
      const std::string others = runs_below(fs::path{path}.parent_path().string());
      return Error{ErrorCode::not_found,
                   "the latest start, " + printable(fs::canonical(path, code).string()) +
                       ", has no records" + (others.empty() ? "" : "; name a run: " + others)};
    }
    const std::string below = runs_below(path);
    return Error{
        ErrorCode::not_found,
        printable(path) + " is not a run directory: " +
            (below.empty() ? "it has neither run.json nor records_*.jsonl; name the directory that "
                             "the monitor writes, such as logs/perf_monitor/latest"
                           : "name one of the runs below it: " + below)};
  }
  if (is_outdated(run.files.front().path))
    return outdated(path, "another version of flopmeter wrote its records");
  if (metadata.error().code == ErrorCode::io_error)
    run.note = metadata.error().message + ": model, device, and world are unknown";
  if (metadata.error().code == ErrorCode::parse_error)
    run.note = printable(RunLayout::metadata_in(path)) +
               " is damaged: model, device, and world are unknown";
  return run;
}

Result<bool> RunListing::refresh() {
  struct stat info {};
  if (stat(directory_.c_str(), &info) != 0)
    return Error{ErrorCode::not_found,
                 "cannot read the run directory " + printable(directory_) + ": " +
                     std::generic_category().message(errno)};
  const std::int64_t changed = info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
  if (changed == listed_) return false;
  auto run = open_run(directory_);
  if (!run) return run.error();
  run_ = *std::move(run);
  // A file made in the same tick as the listing does not change the time: list again then.
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  listed_ = now.tv_sec - info.st_mtim.tv_sec > 2 ? changed : -1;
  return true;
}

std::vector<StepRecord> read_window(const RunDirectory& run, int rank, std::size_t most, bool all) {
  std::deque<StepRecord> window;
  std::int64_t done_later = std::numeric_limits<std::int64_t>::max();
  const std::vector<RankFile> files = run.files_of(rank);
  for (auto file = files.rbegin(); file != files.rend() && window.size() < most; ++file) {
    const std::deque<StepRecord> older =
        newest_records(file->path, most - window.size(), all, done_later);
    window.insert(window.begin(), older.begin(), older.end());
  }
  return {window.begin(), window.end()};
}

}  // namespace flopmeter
