// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/core/world.h>
#include <flopmeter/runstore/record_reader.h>
#include <flopmeter/runstore/run_directory.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <tuple>

namespace flopmeter {
namespace {

using Json = nlohmann::json;

constexpr std::streamsize most_description_bytes = 1 << 20U;

/// The file's object, or something that is none, and then why; a missing file has no reason.
Json read_json(const std::string& path, std::string& why) {
  std::ifstream file{path, std::ios::binary};
  if (!file) return {};
  std::string text(most_description_bytes, '\0');
  file.read(text.data(), most_description_bytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  Json json = Json::parse(valid_utf8(text), nullptr, false);
  if (!json.is_object()) why = path + " is damaged";
  return json;
}

const Json& member(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string{};
}

std::optional<int> count_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < 1 || number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(number);
}

RunDescription read_description(const Json& run) {
  RunDescription description;
  description.run_id = text_of(run, "run_id");
  description.stamp = text_of(run, "stamp");
  description.model = text_of(run, "model");
  description.convention = text_of(run, "convention");
  description.mode = text_of(run, "mode");
  const Json& device = member(run, "device");
  description.peaks.device = text_of(device, "name");
  description.peaks.source = text_of(device, "source");
  const Json& peaks = member(device, "peak_flops_per_second");
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const Json& peak = member(peaks, std::string{to_string(dtype)}.c_str());
    if (peak.is_number() && peak.get<double>() > 0)
      description.peaks.set(dtype, {peak.get<double>()});
  }
  if (const Json& speed = member(device, "memory_bytes_per_second");
      speed.is_number() && speed.get<double>() > 0)
    description.peaks.memory_bytes_per_second = speed.get<double>();
  if (const Json& shapes = member(device, "shape_rates"); shapes.is_array()) {
    for (const Json& shape : shapes) {
      const auto dtype = parse_dtype(text_of(shape, "dtype"));
      const auto rows = count_of(shape, "rows");
      const auto width = count_of(shape, "width");
      const Json& rate = member(shape, "flops_per_second");
      if (dtype && rows && width && rate.is_number())
        description.peaks.shapes.push_back({*dtype, *rows, *width, {rate.get<double>()}});
    }
  }
  const Json& world = member(run, "world");
  description.world_size = count_of(world, "size");
  description.data_parallel = count_of(world, "data_parallel");
  description.pipeline_parallel = count_of(world, "pipeline_parallel");
  description.pipeline_stride = count_of(world, "pipeline_stride");
  description.devices_per_rank = count_of(world, "devices_per_rank");
  description.processors = count_of(run, "processors");
  description.log_interval = count_of(run, "log_interval");
  if (const Json& details = member(run, "details"); details.is_object())
    description.details = details.dump();
  return description;
}

/// "records_20240129_103000.rank7.jsonl" taken apart.
std::optional<RankFile> stream_of(const std::filesystem::path& path) {
  constexpr std::string_view prefix = "records_";
  constexpr std::string_view mark = ".rank";
  constexpr std::string_view suffix = ".jsonl";
  const std::string name = path.filename().string();
  std::string_view rest = name;
  if (!rest.starts_with(prefix) || !rest.ends_with(suffix)) return std::nullopt;
  rest.remove_prefix(prefix.size());
  rest.remove_suffix(suffix.size());
  const std::size_t at = rest.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view number = rest.substr(at + mark.size());
  const auto rank = parse_int(number.substr(0, number.find('.')));
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) return std::nullopt;
  return RankFile{static_cast<int>(*rank), std::string{rest.substr(0, at)}, path.string()};
}

/// The newest `most` records of a stream that a later start did not do again.  Reads no more of its
/// end than that takes.  Lowers `done_later` to the stream's first step where it read all of it.
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

}  // namespace

int RunDescription::role(int rank) const {
  return role_of(rank, pipeline_parallel.value_or(1), pipeline_stride.value_or(0));
}

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
    if (auto stream = stream_of(entry->path())) run.files.push_back(*std::move(stream));
  }
  std::sort(run.files.begin(), run.files.end(), [](const RankFile& a, const RankFile& b) {
    return std::tie(a.rank, a.stamp) < std::tie(b.rank, b.stamp);
  });
  std::string why;
  const Json json = read_json(path + "/run.json", why);
  if (!json.is_object() && run.files.empty())
    return Error{ErrorCode::not_found,
                 printable(path) +
                     " is no run directory: it has neither run.json nor records_*.jsonl; give the "
                     "directory that the monitor writes, such as logs/perf_monitor"};
  if (!why.empty())
    run.note = printable(why) + ": what it says about the model, device and world is not known";
  run.description = read_description(json);
  return run;
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
