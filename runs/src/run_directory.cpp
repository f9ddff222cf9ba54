// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/core/world.h>
#include <flopmeter/runs/record_reader.h>
#include <flopmeter/runs/run_directory.h>

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

/// The file's object, or something that is none.
Json read_json(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string text(most_description_bytes, '\0');
  file.read(text.data(), most_description_bytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return Json::parse(text, nullptr, false);
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
  std::vector<RankFile> found;
  std::copy_if(files.begin(), files.end(), std::back_inserter(found), [rank](const RankFile& file) {
    return file.rank == rank;
  });
  return found;
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
  const Json json = read_json(path + "/run.json");
  if (!json.is_object() && run.files.empty())
    return Error{ErrorCode::not_found,
                 printable(path) +
                     " is no run directory: it has neither run.json nor records_*.jsonl; give the "
                     "directory that the monitor writes, such as logs/perf_monitor"};
  run.description = read_description(json);
  return run;
}

std::vector<StepRecord> read_window(const RunDirectory& run, int rank, std::size_t most, bool all) {
  std::deque<StepRecord> window;
  for (const RankFile& file : run.files_of(rank)) {
    RecordReader reader{file.path};
    bool first = true;
    while (const auto record = reader.next()) {
      // A restart goes back to its checkpoint: what came after it was done in vain.
      while (first && !window.empty() && window.back().step >= record->step) window.pop_back();
      first = false;
      if (!all && record->tag != StepTag::train) continue;
      window.push_back(*record);
      if (window.size() > most) window.pop_front();
    }
  }
  return {window.begin(), window.end()};
}

}  // namespace flopmeter
