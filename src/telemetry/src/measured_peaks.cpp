// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/measured_peaks.h>

#include <nlohmann/json.hpp>
#include <unistd.h>

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

/// The cache; empty if it does not exist or cannot be read.
Json load(const std::filesystem::path& file) {
  std::ifstream in(file);
  Json cache = Json::parse(in, nullptr, false);
  if (!cache.is_object() || cache.value("schema", "") != schema || !cache["machines"].is_array()) {
    cache = {{"schema", schema}, {"machines", Json::array()}};
  }
  return cache;
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
  const auto file = cache_file();
  if (file.empty())
    return Error{ErrorCode::io_error, "no cache directory: set HOME or XDG_CACHE_HOME"};
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  Json cache = load(file);
  Json fresh = to_object(machine);
  Json machines = Json::array();
  for (Json& entry : cache["machines"]) {
    const bool same = entry.value("processor", "") == machine.processor &&
                      entry.value("threads", 0) == machine.threads &&
                      entry.value("torch", "") == machine.torch;
    if (!same) {
      machines.push_back(entry);
      continue;
    }
    // Keep dtypes that were measured earlier.
    for (auto& [dtype, peak] : entry["peaks"].items()) {
      if (!fresh["peaks"].contains(dtype)) fresh["peaks"][dtype] = peak;
    }
  }
  machines.push_back(fresh);
  cache["machines"] = machines;
  // Write a temporary file and rename it, so that readers never see a partial file.
  const auto part = file.string() + "." + std::to_string(::getpid());
  {
    std::ofstream out(part);
    out << cache.dump(2) << '\n';
    if (!out.flush())
      return Error{ErrorCode::io_error,
                   "cannot write " + part + "; check that the directory is writable"};
  }
  std::filesystem::rename(part, file, error);
  if (error)
    return Error{ErrorCode::io_error, "cannot write " + file.string() + ": " + error.message()};
  return file.string();
}

Result<PeakTable> load_measured_peaks(std::optional<int> threads) {
  const std::string processor = processor_name();
  const std::string file = cache_file();
  PeakTable table{.device = processor};
  const Json cache = load(file);
  for (const Json& entry : cache["machines"]) {
    if (!entry.is_object() || entry.value("processor", "") != processor) continue;
    if (threads && entry.value("threads", 0) != *threads) continue;
    table = {.device = processor,
             .source = "measured: " + file + ", " + std::to_string(entry.value("threads", 0)) +
                       " threads, torch " + entry.value("torch", "")};
    const Json peaks = entry.value("peaks", Json::object());
    for (const auto& [name, peak] : peaks.items()) {
      const auto dtype = parse_dtype(name);
      const double rate = peak.is_object() ? peak.value("flops_per_second", 0.0) : 0.0;
      if (!dtype || !(rate > 0)) continue;
      table.set(*dtype, {rate});
      for (const Json& shape : peak.value("shapes", Json::array())) {
        if (is_shape(shape))
          table.shapes.push_back({*dtype,
                                  shape[0].get<std::int64_t>(),
                                  shape[1].get<std::int64_t>(),
                                  {shape[2].get<double>()}});
      }
    }
    if (const double speed = entry.value("memory_bytes_per_second", 0.0); speed > 0)
      table.memory_bytes_per_second = speed;
  }
  if (!table.source.empty()) return table;
  return Error{ErrorCode::not_found, "no measured peak for this machine; run: flopmeter peak"};
}

}  // namespace flopmeter
