// SPDX-License-Identifier: Apache-2.0
#include "run_directory.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>

#include <dirent.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace flopmeter {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t tail_bytes = 1 << 16;
constexpr std::size_t stamp_size = 15;

std::vector<std::string> list(const std::string& directory) {
  std::vector<std::string> names;
  DIR* handle = opendir(directory.c_str());
  if (handle == nullptr) return names;
  while (const dirent* entry = readdir(handle))
    names.emplace_back(entry->d_name);  // NOLINT(concurrency-mt-unsafe)
  closedir(handle);
  std::sort(names.begin(), names.end());
  return names;
}

/// The last `most` bytes of a file.
std::string read_tail(const std::string& path, std::int64_t most) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  struct stat info {};
  std::string text;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    const std::int64_t from = std::max<std::int64_t>(0, info.st_size - most);
    text.resize(static_cast<std::size_t>(info.st_size - from));
    const ssize_t size = pread(fd, text.data(), text.size(), from);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  close(fd);
  return text;
}

/// Whether a process still writes the file: writers hold a lock on it.
bool is_live(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool live = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return live;
}

/// The stamp in a file's name, where it is one of ours.
std::string stamp_in(const std::string& name) {
  for (const std::string_view prefix :
       {"perf_metrics_", "perf_summary_", "records_", "op_profile_"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string stamp = name.substr(prefix.size(), stamp_size);
    const bool digits = std::count_if(stamp.begin(), stamp.end(), [](char c) {
                          return c >= '0' && c <= '9';
                        }) == 14;
    if (stamp.size() == stamp_size && stamp[8] == '_' && digits) return stamp;
  }
  return {};
}

/// Texts and numbers of the outermost object.  No tree is made: nlohmann's destructor allocates,
/// and without memory that would end the process.
class Members final : public nlohmann::json_sax<Json> {
 public:
  /// Whether `text` is one object.
  bool read(std::string_view text) { return Json::sax_parse(valid_utf8(text), this) && is_object_; }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? "" : found->second;
  }
  [[nodiscard]] double number(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? 0 : found->second;
  }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t value) override { return put(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) override { return put(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*digits*/) override { return put(value); }
  bool string(std::string& value) override {
    if (depth_ == 1) texts_[name_] = value;
    return true;
  }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override {
    is_object_ = is_object_ || depth_ == 0;
    return ++depth_ > 0;
  }
  bool key(std::string& name) override {
    if (depth_ == 1) name_ = name;
    return true;
  }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t /*size*/) override { return ++depth_ > 0; }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(std::size_t /*at*/,
                   const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool put(double value) {
    if (depth_ == 1) numbers_[name_] = value;
    return true;
  }

  int depth_ = 0;
  bool is_object_ = false;
  std::string name_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, double> numbers_;
};

}  // namespace

std::string stamp_of(double unix_seconds) {
  const auto seconds = static_cast<std::time_t>(std::floor(unix_seconds));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y%m%d_%H%M%S", &parts)};
}

std::string claim_stamp(const std::string& directory, int rank, double unix_seconds) {
  for (int later = 0; later < 1000; ++later) {
    const std::string stamp = stamp_of(unix_seconds + later);
    const std::string path =
        directory + "/records_" + stamp + ".rank" + std::to_string(rank) + ".jsonl";
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0) {
      close(fd);
      return stamp;
    }
    if (errno != EEXIST) break;
  }
  return stamp_of(unix_seconds);
}

std::string new_run_id() {
  std::random_device device;
  constexpr std::string_view hex = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 16; ++i) id.push_back(hex[device() & 15U]);
  return id;
}

std::optional<std::string> stored_run_id(const std::string& directory) {
  Members run;
  if (!run.read(read_tail(directory + "/run.json", 1 << 20)) || run.text("run_id").empty())
    return std::nullopt;
  return run.text("run_id");
}

Result<void> write_run_json(const Options& options,
                            const Connections& connections,
                            const RunInfo& run,
                            bool only_new) {
  std::string text;
  JsonWriter json{text, 2};
  json.begin_object()
      .field("schema", "flopmeter.run/1")
      .field("run_id", run.run_id)
      .field("stamp", run.stamp)
      .field("model", run.model.empty() ? std::nullopt : std::optional{run.model})
      .field("convention", run.convention)
      .field("mode", to_string(options.mode));
  json.key("device").begin_object();
  json.field("name", run.peaks.device).field("source", run.peaks.source);
  json.key("peak_flops_per_second").begin_object();
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (run.peaks.peaks[i]) json.field(to_string(static_cast<Dtype>(i)), *run.peaks.peaks[i]);
  }
  json.end_object().field("memory_bytes_per_second", run.peaks.memory_bytes_per_second);
  json.key("shape_rates").begin_array();
  for (const ShapeRate& shape : run.peaks.shapes) {
    json.begin_object()
        .field("dtype", to_string(shape.dtype))
        .field("rows", shape.rows)
        .field("width", shape.width)
        .field("flops_per_second", shape.rate)
        .end_object();
  }
  json.end_array().end_object();
  json.key("world").begin_object();
  json.field("size", run.world_size)
      .field("data_parallel", run.data_parallel)
      .field("tensor_parallel", connections.world.tensor_parallel)
      .field("pipeline_parallel", connections.world.pipeline_parallel)
      .field("pipeline_stride",
             connections.world.pipeline_stride > 0
                 ? std::optional{connections.world.pipeline_stride}
                 : std::nullopt)
      .field("context_parallel", connections.world.context_parallel)
      .field("expert_parallel", connections.world.expert_parallel)
      .field("devices_per_rank", connections.devices);
  json.end_object()
      .field("processors", static_cast<int>(std::thread::hardware_concurrency()))
      .field("log_interval", run.log_interval);
  if (!connections.run_json_extra.empty()) json.key("details").raw(connections.run_json_extra);
  json.end_object();
  text.push_back('\n');

  const std::string path = run.directory + "/run.json";
  const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  unlink(temporary.c_str());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int code = errno;
  if (fd >= 0) close(fd);
  if (good) {
    // link() leaves a file that is there alone, so that the first of several ranks wins.
    good = only_new ? link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST
                    : rename(temporary.c_str(), path.c_str()) == 0;
    code = errno;
  }
  unlink(temporary.c_str());
  if (good) return {};
  std::array<char, 128> buffer{};
  return Error{ErrorCode::io_error,
               "cannot write " + path + ": " + strerror_r(code, buffer.data(), buffer.size())};
}

std::optional<EarlierRun> earlier_run(const std::string& directory, int rank) {
  const std::string mark = ".rank" + std::to_string(rank) + ".";
  const auto names = list(directory);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!name->starts_with("records_") || !name->ends_with(".jsonl") ||
        name->find(mark) == std::string::npos)
      continue;
    const std::string path = directory + "/" + *name;
    if (is_live(path)) return std::nullopt;
    std::string text = read_tail(path, tail_bytes);
    // Whatever follows the last line end was cut off by the end of the process.
    while (true) {
      const std::size_t end = text.rfind('\n');
      if (end == std::string::npos) break;
      text.resize(end);
      const std::size_t begin = text.rfind('\n');
      Members record;
      if (!record.read(std::string_view{text}.substr(begin == std::string::npos ? 0 : begin + 1)))
        continue;
      return EarlierRun{
          .first_start_unix = record.number("time_unix") - record.number("run_seconds"),
          .productive_seconds = record.number("productive_seconds"),
          .last_step = static_cast<std::int64_t>(record.number("step"))};
    }
  }
  return std::nullopt;
}

bool append_line(const std::string& path, std::string_view line) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return false;
  const off_t size = lseek(fd, 0, SEEK_END);
  const bool whole = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!whole && size >= 0) {  // half a line would spoil the file for its readers
    [[maybe_unused]] const int ignored = ftruncate(fd, size);
  }
  close(fd);
  return whole;
}

void retain_stamps(const std::string& directory, int keep) {
  std::map<std::string, std::vector<std::string>> stamps;
  for (const std::string& name : list(directory)) {
    if (const std::string stamp = stamp_in(name); !stamp.empty())
      stamps[stamp].push_back(directory + "/" + name);
  }
  int surplus = static_cast<int>(stamps.size()) - keep;
  for (const auto& [stamp, paths] : stamps) {
    if (surplus-- <= 0) break;
    if (std::any_of(paths.begin(), paths.end(), is_live)) continue;
    for (const std::string& path : paths) unlink(path.c_str());
  }
}

}  // namespace flopmeter
