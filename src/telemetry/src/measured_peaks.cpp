// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/telemetry/measured_peaks.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace flopmeter {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema = "flopmeter.peaks/1";

Json to_object(const MeasuredMachine& machine) {
  Json peaks = Json::object();
  for (const MeasuredPeak& peak : machine.peaks) {
    Json shapes = Json::array();
    for (const ShapeRate& shape : peak.shapes)
      shapes.push_back({shape.rows, shape.width, shape.rate.value});
    peaks[std::string(to_string(peak.dtype))] = {
        {"flops_per_second", peak.rate.value}, {"size", peak.size}, {"shapes", shapes}};
  }
  Json object = {{"processor", machine.processor},
                 {"threads", machine.threads},
                 {"torch", machine.torch},
                 {"peaks", peaks}};
  if (machine.memory_bytes_per_second)
    object["memory_bytes_per_second"] = *machine.memory_bytes_per_second;
  return object;
}

/// [rows, width, FLOP/s]
bool is_shape(const Json& shape) {
  return shape.is_array() && shape.size() == 3 && shape[0].is_number_integer() &&
         shape[1].is_number_integer() && shape[2].is_number();
}

std::filesystem::path cache_file() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg != '\0')
    return std::filesystem::path(xdg) / "flopmeter" / "peaks.json";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache" / "flopmeter" / "peaks.json";
}

/// The value of `key` if it has the type of `otherwise`, else `otherwise`.  Other programs may have
/// written the cache.
Json member(const Json& object, const char* key, const Json& otherwise) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  const bool same_type = at != object.end() && (at->type() == otherwise.type() ||
                                                (at->is_number() && otherwise.is_number()));
  return same_type ? *at : otherwise;
}
std::string text_at(const Json& object, const char* key) {
  return member(object, key, "");
}
double number_at(const Json& object, const char* key) {
  return member(object, key, 0.0);
}
Json list_at(const Json& object, const char* key) {
  return member(object, key, Json::array());
}
Json object_at(const Json& object, const char* key) {
  return member(object, key, Json::object());
}

/// Entries of the cache; none if it does not exist or cannot be read.
Json load_machines(const std::filesystem::path& file) {
  constexpr std::size_t most = 1U << 20U;
  constexpr int deepest = 16;
  const auto text = read_file(file, most);
  if (!text) return Json::array();
  const auto skip_deep = [](int depth, Json::parse_event_t, Json&) { return depth < deepest; };
  const Json cache = Json::parse(*text, skip_deep, false);
  return text_at(cache, "schema") == schema ? list_at(cache, "machines") : Json::array();
}

bool same_machine(const Json& entry, const MeasuredMachine& machine) {
  return text_at(entry, "processor") == machine.processor &&
         number_at(entry, "threads") == machine.threads && text_at(entry, "torch") == machine.torch;
}

}  // namespace

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::string to_json(const MeasuredMachine& machine) {
  return to_object(machine).dump(2);
}

Result<std::string> store_measured_peaks(const MeasuredMachine& machine) {
  if (machine.peaks.empty()) return Error{ErrorCode::invalid_argument, "no peak was measured"};
  const auto file = cache_file();
  if (file.empty())
    return Error{ErrorCode::io_error, "no cache directory: set HOME or XDG_CACHE_HOME"};
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  Json fresh = to_object(machine);
  Json machines = Json::array();
  for (const Json& entry : load_machines(file)) {
    if (!same_machine(entry, machine)) {
      machines.push_back(entry);
      continue;
    }
    // Keep dtypes that were measured earlier.
    const Json earlier = object_at(entry, "peaks");
    for (const auto& [dtype, peak] : earlier.items()) {
      if (!fresh["peaks"].contains(dtype)) fresh["peaks"][dtype] = peak;
    }
  }
  machines.push_back(fresh);
  const Json cache = {{"schema", schema}, {"machines", machines}};
  if (const auto stored = replace_file(file, cache.dump(2) + "\n"); !stored) return stored.error();
  return file.string();
}

Result<PeakTable> load_measured_peaks(std::optional<int> threads) {
  const std::string processor = processor_name();
  const std::string file = cache_file();
  PeakTable table{.device = processor};
  for (const Json& entry : load_machines(file)) {
    if (text_at(entry, "processor") != processor) continue;
    const double counted = number_at(entry, "threads");
    if (threads && counted != *threads) continue;
    const Json peaks = object_at(entry, "peaks");
    const bool any = std::any_of(peaks.begin(), peaks.end(), [](const Json& peak) {
      return number_at(peak, "flops_per_second") > 0;
    });
    if (!any) continue;  // must not hide a peak from another source
    table = {.device = processor,
             .source = "measured: " + file + ", " + shortest(counted) + " threads, torch " +
                       text_at(entry, "torch")};
    for (const auto& [name, peak] : peaks.items()) {
      const auto dtype = parse_dtype(name);
      const double rate = number_at(peak, "flops_per_second");
      if (!dtype || !(rate > 0)) continue;
      table.set(*dtype, {rate});
      for (const Json& shape : list_at(peak, "shapes")) {
        if (is_shape(shape))
          table.shapes.push_back({*dtype,
                                  shape[0].get<std::int64_t>(),
                                  shape[1].get<std::int64_t>(),
                                  {shape[2].get<double>()}});
      }
    }
    if (const double speed = number_at(entry, "memory_bytes_per_second"); speed > 0)
      table.memory_bytes_per_second = speed;
  }
  if (!table.source.empty()) return table;
  return Error{ErrorCode::not_found, "no measured peak for this machine; run: flopmeter peak"};
}

}  // namespace flopmeter
