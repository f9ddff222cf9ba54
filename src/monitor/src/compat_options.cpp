// SPDX-License-Identifier: Apache-2.0
#include "option_paths.h"

#include <flopmeter/core/text.h>
#include <flopmeter/monitor/compat_options.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

constexpr std::string_view own_block = "flopmeter.";

// clang-format off
constexpr auto names = std::to_array<CompatName>({
    {"enabled", "system.enable_perf_monitor", "--enable-perf-monitor"},
    {"log_interval", "system.perf_log_interval", "--perf-log-interval"},
    {"directory", "system.perf_log_dir", "--perf-log-dir"},
    {"console", "system.perf_console_output", "--perf-console-output"},
    {"memory", "system.perf_memory_tracking", "--perf-memory-tracking"},
    {"gpu_metrics", "", "--perf-gpu-metrics"},
    {"breakdown", "system.perf_breakdown", "--perf-breakdown"},
    {"log_format", "system.perf_log_format", "--perf-log-format"},
    {"max_log_files", "system.perf_max_log_files", "--perf-max-log-files"},
    {"mode", "monitoring.mfu_calculation_mode", "--perf-mode"},
    {"measure_frequency", "monitoring.performance_monitoring.measure_flops_frequency monitoring.flops_profile_freq monitor.freq.flops_profile_freq", "--perf-measure-frequency"},
    {"training_phase", "monitoring.training_phase monitoring.performance_monitoring.training_phase", "--perf-training-phase"},
    {"warmup_frequency", "monitoring.performance_monitoring.phase_frequencies.warmup", ""},
    {"main_frequency", "monitoring.performance_monitoring.phase_frequencies.main", ""},
    {"finetune_frequency", "monitoring.performance_monitoring.phase_frequencies.finetune", ""},
    {"initial_profiling", "monitoring.performance_monitoring.smart_mode.initial_profiling", ""},
    {"calibration", "monitoring.performance_monitoring.smart_mode.calibration_enabled", ""},
    {"recalibration_frequency", "monitoring.performance_monitoring.smart_mode.recalibration_frequency", ""},
    {"hardware_counters", "monitoring.performance_monitoring.hybrid_mode.hardware_counters_enabled", ""},
    {"fallback_to_profiler", "monitoring.performance_monitoring.hybrid_mode.fallback_to_profiler", ""},
    {"overhead_budget", "monitoring.performance_monitoring.overhead_budget", ""},
    {"profile_freq", "", "--perf-profile-freq"},
    {"unmeasured", "monitoring.unmeasured", ""},
    {"tensorboard", "", "--tensorboard", true},
    {"tensorboard_dir", "", "--tensorboard-dir", true},
    {"csv", "", "--perf-csv"},
    {"prometheus_file", "", "--perf-prometheus-file"},
    {"metrics_address", "", "--perf-metrics-address"},
    {"sink", "", "--perf-sink"},
    {"broadcast", "monitoring.performance_monitoring.broadcast_from_rank0", ""},
    {"run_id", "", "--perf-run-id"},
});
// clang-format on

const OptionRow* row_called(std::string_view name) {
  const auto rows = option_rows();
  const auto at = std::find_if(
      rows.begin(), rows.end(), [name](const OptionRow& row) { return row.name == name; });
  return at == rows.end() ? nullptr : &*at;
}

/// "--no-perf-breakdown".
std::string negated(const CompatName& name) {
  return "--no-" + std::string{name.flag.substr(2)};
}

/// The row that a path names; collects all paths of the same block in `known`, for a suggestion.
const OptionRow* find_row(std::string_view path, std::vector<std::string>& known) {
  const std::string_view block = path.substr(0, path.find('.') + 1);
  for (const OptionRow& row : option_rows()) {
    const std::string own = std::string{own_block}.append(row.name);
    if (path == own) return &row;
    if (block == own_block) known.push_back(own);
  }
  for (const CompatName& name : names) {
    std::string_view rest = name.yaml;
    while (!rest.empty()) {
      const std::string_view other = rest.substr(0, rest.find(' '));
      if (path == other) return row_called(name.option);
      if (other.starts_with(block)) known.emplace_back(other);
      rest.remove_prefix(std::min(other.size() + 1, rest.size()));
    }
  }
  return nullptr;
}

std::string spelled(std::string_view flag) {
  std::string name{flag};
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_perf_flag(std::string_view flag) {
  return flag.starts_with("--perf-") || flag.starts_with("--no-perf-") ||
         flag.find("perf-monitor") != std::string_view::npos;
}

Error unknown_flag(std::string_view flag) {
  std::vector<std::string> known;
  for (const CompatName& name : names) {
    if (name.flag.empty()) continue;
    known.emplace_back(name.flag);
    if (row_called(name.option)->is_switch) known.push_back(negated(name));
  }
  const std::vector<std::string_view> views{known.begin(), known.end()};
  return {ErrorCode::invalid_argument,
          "unknown flag '" + printable(flag) + "'" + did_you_mean(flag, views)};
}

/// Reads the flag at `i`; false if it is not a flag of the monitor.
Result<bool> take_flag(Options& options,
                       std::span<const std::string> arguments,
                       std::size_t& i,
                       bool& shared) {
  const Assignment flag = split(arguments[i]);
  const std::string spelling = spelled(flag.name);
  for (const CompatName& name : names) {
    if (name.flag.empty()) continue;
    const OptionRow& row = *row_called(name.option);
    const bool off = row.is_switch && spelling == negated(name);
    if (spelling != name.flag && !off) continue;
    shared = name.shared;
    std::string value;
    if (flag.value && !off) {
      value = *flag.value;
    } else if (row.is_switch) {
      value = off ? "false" : "true";
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      value = arguments[++i];
    } else {
      return Error{ErrorCode::invalid_argument, "flag " + spelling + " needs a value"};
    }
    const std::string_view must_be = row.parse(options, value);
    if (must_be.empty()) return true;
    return Error{
        ErrorCode::invalid_argument,
        "flag " + spelling + " is '" + printable(value) + "' but must be " + std::string{must_be}};
  }
  if (is_perf_flag(spelling)) return unknown_flag(spelling);
  return false;
}

}  // namespace

std::span<const CompatName> compat_names() {
  return names;
}

Options flag_defaults() {
  Options options;
  options.enabled = false;
  options.console = false;
  options.directory = "logs/perf_monitor";  // all files directly in it, as in FlagScale
  return options;
}

std::string flags_help() {
  const Options defaults = flag_defaults();
  std::string text;
  for (const CompatName& name : names) {
    if (name.flag.empty()) continue;
    const OptionRow& row = *row_called(name.option);
    std::string line = "  " + std::string{name.flag};
    line += row.is_switch ? " / " + negated(name) : " VALUE";
    line.append(line.size() < 54 ? 54 - line.size() : 1, ' ').append(row.help);
    if (const std::string shown = row.show(defaults); !shown.empty()) line += " [" + shown + "]";
    text.append(line).append("\n");
  }
  return text;
}

Assignment split(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string_view option_path(std::string_view path) {
  if (path.starts_with("train.")) path.remove_prefix(6);
  if (path.starts_with(own_block) || path.starts_with("monitoring.") ||
      path.starts_with("monitor.freq."))
    return path;
  constexpr std::string_view system = "system.";
  if (!path.starts_with(system)) return {};
  const std::string_view key = path.substr(system.size());
  // FlagScale's block has many other keys.
  return key.starts_with("perf_") || key.find("perf_monitor") != std::string_view::npos
             ? path
             : std::string_view{};
}

std::string_view misspelled_block(std::string_view path) {
  if (path.starts_with("train.")) path.remove_prefix(6);
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {};
  constexpr std::array<std::string_view, 5> blocks = {
      "flopmeter", "monitoring", "monitor", "system", "train"};
  const std::string_view name = path.substr(0, dot);
  std::vector<std::string> known;
  if (name == "monitor" &&
      find_row(std::string{"monitoring"}.append(path.substr(dot)), known) != nullptr)
    return "monitoring";
  if (std::find(blocks.begin(), blocks.end(), name) != blocks.end()) return {};
  for (const std::string_view block : nearest(name, blocks)) {
    if (!option_path(std::string{block}.append(path.substr(dot))).empty()) return block;
  }
  return {};
}

Result<void> set_path(Options& options,
                      std::string_view path,
                      std::string_view value,
                      std::string_view where) {
  std::vector<std::string> known;
  const OptionRow* row = find_row(path, known);
  if (row == nullptr) {
    const std::vector<std::string_view> views{known.begin(), known.end()};
    return Error{
        ErrorCode::invalid_argument,
        std::string{where} + ": unknown key '" + printable(path) + "'" + did_you_mean(path, views)};
  }
  const std::string_view must_be = row->parse(options, value);
  if (must_be.empty()) return {};
  return Error{ErrorCode::invalid_argument,
               std::string{where} + ": " + printable(path) + " is '" + printable(value) +
                   "' but must be " + std::string{must_be}};
}

Result<std::vector<std::string>> apply_arguments(Options& options,
                                                 std::span<const std::string> arguments) {
  std::vector<std::string> rest;
  Options changed = options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t first = i;
    bool shared = false;
    if (argument == "--") {
      rest.insert(rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    if (argument.starts_with("--")) {
      const auto taken = take_flag(changed, arguments, i, shared);
      if (!taken) return taken.error();
      if (*taken && !shared) continue;
    } else if (const Assignment word = split(argument); word.value) {
      std::string_view path = word.name;
      path.remove_prefix(
          std::min(path.find_first_not_of('+'), path.size()));  // Hydra's "+key=value" adds a key
      if (const std::string_view known = option_path(path); !known.empty()) {
        if (const auto done = set_path(changed, known, *word.value, "command line"); !done)
          return done.error();
        continue;
      }
    }
    rest.insert(rest.end(),
                arguments.begin() + static_cast<std::ptrdiff_t>(first),
                arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  options = std::move(changed);
  return rest;
}

}  // namespace flopmeter
