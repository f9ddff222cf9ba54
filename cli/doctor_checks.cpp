// SPDX-License-Identifier: Apache-2.0
#include "doctor_checks.h"

#include "python_package.h"

#include <flopmeter/catalog/cpu_peak.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/text.h>
#include <flopmeter/sinks/sinks.h>
#include <flopmeter/telemetry/cpu_info.h>
#include <flopmeter/telemetry/hardware_counters.h>
#include <flopmeter/telemetry/measured_peaks.h>

#include <dlfcn.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace flopmeter {
namespace {

namespace fs = std::filesystem;

/// Loads the first of the files that exists; calls nothing in it.
Check library(std::string name,
              std::initializer_list<const char*> files,
              const char* needed,
              std::string recommendation) {
  for (const char* file : files) {
    if (void* handle = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
      ::dlclose(handle);
      return {.name = std::move(name), .ok = true, .detail = file};
    }
  }
  return {.name = std::move(name),
          .detail = std::string{*files.begin()} + " does not load: " + needed,
          .recommendation = std::move(recommendation)};
}

std::string rates(const PeakTable& table) {
  std::string text;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (!table.peaks[i]) continue;
    text.append(text.empty() ? "" : ", ")
        .append(to_string(static_cast<Dtype>(i)))
        .append(" ")
        .append(si(table.peaks[i]->value))
        .append("FLOP/s");
  }
  return text;
}

Check installed(const char* program, const char* what) {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (fs::exists(here / program, ignored))
    return {.name = what, .ok = true, .detail = (here / program).string()};
  return {.name = what,
          .detail = std::string{program} + " is not installed; it needs libtorch",
          .recommendation = "install torch, then run make build"};
}

Check peaks(std::string name, const Result<PeakTable>& table, std::string recommendation) {
  if (!table)
    return {.name = std::move(name),
            .detail = table.error().message,
            .recommendation = std::move(recommendation)};
  return {
      .name = std::move(name), .ok = true, .detail = rates(*table) + " (" + (*table).source + ")"};
}

Check counters() {
  if (const auto opened = open_cpu_flop_counters(); !opened) {
    return {.name = "CPU FLOP counters",
            .detail = opened.error().message,
            .recommendation = "optional; only mode hybrid uses them"};
  }
  return {.name = "CPU FLOP counters", .ok = true, .detail = "perf_event_open"};
}

Check outputs() {
  std::string names;
  for (const SinkPlugin* plugin : sink_plugins())
    names.append(names.empty() ? "" : ", ").append(plugin->name);
  return {.name = "outputs", .ok = true, .detail = names};
}

/// Standard output of a program; empty if it does not start or fails.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe{::popen(command.c_str(), "r"), ::pclose};
  std::string text;
  std::array<char, 4096> part{};
  while (pipe && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return text + "'";
}

}  // namespace

std::vector<Check> check_machine() {
  const auto cpu = read_cpu_info();
  return {peaks("CPU peak (formula)",
                cpu ? Result<PeakTable>{cpu_peak(*cpu)} : Result<PeakTable>{cpu.error()},
                "measure it: flopmeter peak"),
          peaks("measured peak", load_measured_peaks(), ""),
          installed("flopmeter-peak", "flopmeter peak"),
          installed("flopmeter-demo", "flopmeter demo"),
          counters(),
          library("NVML", {"libnvidia-ml.so.1"}, "no NVIDIA driver", "install the driver"),
          library("DCGM",
                  {"libdcgm.so.4", "libdcgm.so.3"},
                  "no NVIDIA DCGM",
                  "install datacenter-gpu-manager"),
          library("MPI",
                  {"libmpi.so.40", "libmpi.so.12"},
                  "no MPI",
                  "optional, for mpirun; install openmpi-bin"),
          library("MPI adapter",
                  {"libflopmeter_mpi.so.0"},
                  "not built, or MPI is missing",
                  "optional, for mpirun; install libopenmpi-dev, then run make build"),
          outputs()};
}

std::vector<Check> check_python(const std::string& python) {
  const Check missing{.name = "Python package", .recommendation = "pip install ., or make build"};
  const auto package = python_package();
  if (!package) {
    Check check = missing;
    check.detail = package.error().message;
    return {check};
  }
  const std::string text =
      output_of(quoted(python) + " " + quoted(*package + "/launcher/doctor.py"));
  const auto rows = nlohmann::json::parse(text, nullptr, false);
  if (!rows.is_array()) {
    return {{.name = "Python",
             .detail = "'" + python + "' does not run " + *package + "/launcher/doctor.py",
             .recommendation = "select another: flopmeter doctor --python PATH"}};
  }
  std::vector<Check> checks;
  for (const auto& row : rows) {
    checks.push_back({.name = row.value("name", ""),
                      .ok = row.value("ok", false),
                      .detail = row.value("detail", ""),
                      .recommendation = row.value("recommendation", "")});
  }
  return checks;
}

}  // namespace flopmeter
