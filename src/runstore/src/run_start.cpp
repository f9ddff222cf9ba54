// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/files.h>
#include <flopmeter/runstore/input_limits.h>
#include <flopmeter/runstore/record_stream.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/runstore/run_metadata_json.h>
#include <flopmeter/runstore/run_start.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <random>
#include <system_error>
#include <vector>

namespace flopmeter {
namespace {

constexpr std::int64_t tail_bytes = 1 << 16;

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code code;
  std::filesystem::directory_iterator entry{directory, code};
  for (; !code && entry != std::filesystem::directory_iterator{}; entry.increment(code)) {
    if (names.size() == InputLimits::files) break;
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string new_run_id() {
  std::random_device device;
  constexpr std::string_view hex = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 16; ++i) id.push_back(hex[device() & 15U]);
  return id;
}

/// Takes a stamp by creating the record file, which must not exist.
std::string claim_stamp(const std::string& directory, int rank, double unix_seconds) {
  for (int later = 0; later < 1000; ++later) {
    std::string stamp = stamp_of(unix_seconds + later);
    const std::string path = RunLayout{directory, stamp, rank}.records();
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0) {
      close(fd);
      return stamp;
    }
    if (errno != EEXIST) break;
  }
  return stamp_of(unix_seconds);
}

/// From the last complete record of the newest start of this rank, unless that start is alive.
std::optional<EarlierRun> earlier_run(const std::string& directory, int rank) {
  const auto names = names_in(directory);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const auto file = RunLayout::parse_records(*name);
    if (!file || file->rank != rank) continue;
    const std::string path = directory + "/" + *name;
    if (has_writer(path)) return std::nullopt;
    std::string text = read_tail(path, tail_bytes).value_or("");
    // Text after the last line end was cut off when the process ended.
    for (std::size_t end = text.rfind('\n'); end != std::string::npos; end = text.rfind('\n')) {
      text.resize(end);
      const std::size_t begin = text.rfind('\n');
      const auto record =
          parse_record(std::string_view{text}.substr(begin == std::string::npos ? 0 : begin + 1));
      if (!record) continue;
      return EarlierRun{
          .first_start_unix = record->time_unix - record->run_seconds.value_or(Seconds{}).value,
          .productive_seconds = record->productive_seconds.value_or(Seconds{}).value,
          .last_step = record->step};
    }
  }
  return std::nullopt;
}

/// Deletes the files of the oldest starts until at most `keep` starts are left.
void delete_old_starts(const std::string& directory, int keep) {
  std::map<std::string, std::vector<std::string>> starts;
  for (const std::string& name : names_in(directory)) {
    if (const std::string stamp = RunLayout::stamp_in(name); !stamp.empty())
      starts[stamp].push_back(directory + "/" + name);
  }
  int surplus = static_cast<int>(starts.size()) - keep;
  for (const auto& [stamp, paths] : starts) {
    if (surplus-- <= 0) break;
    if (std::any_of(paths.begin(), paths.end(), has_writer)) continue;
    for (const std::string& path : paths) unlink(path.c_str());
  }
}

}  // namespace

bool has_writer(const std::string& path) {
  const int fd = open_regular_file(path);
  if (fd < 0) return false;
  const bool live = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return live;
}

StartedRun start_run(RunContext& run, double unix_seconds, int most_starts) {
  const auto stored = read_run_metadata(run.directory);
  const bool named = !run.metadata.run_id.empty();
  const bool restart =
      stored && !(*stored).run_id.empty() && (!named || run.metadata.run_id == (*stored).run_id);
  if (!named) run.metadata.run_id = restart ? (*stored).run_id : new_run_id();
  StartedRun started;
  if (!named || restart) started.earlier = earlier_run(run.directory, run.rank);
  std::error_code ignored;  // write_run_metadata() reports it
  std::filesystem::create_directories(run.directory, ignored);
  // Leaves room for this start, which has no files yet.
  if (run.rank == 0 && most_starts > 0) delete_old_starts(run.directory, most_starts - 1);
  run.metadata.stamp = claim_stamp(run.directory, run.rank, unix_seconds);
  // Rank 0 replaces the file of an earlier start; of the ranks of a first start one wins.
  const bool outdated = !stored && stored.error().code == ErrorCode::unsupported;
  const bool only_new = !outdated && (run.rank != 0 || !stored);
  if (const auto written = write_run_metadata(run.directory, run.metadata, only_new); !written)
    started.problem = written.error().message;
  if (const auto winner = read_run_metadata(run.directory); winner && !named)
    run.metadata.run_id = (*winner).run_id;
  return started;
}

}  // namespace flopmeter
