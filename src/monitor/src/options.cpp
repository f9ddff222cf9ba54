// SPDX-License-Identifier: Apache-2.0
//
// The list of options: the one place to add one.
#include <flopmeter/core/text.h>
#include <flopmeter/monitor/options.h>

#include <algorithm>
#include <array>
#include <limits>

namespace flopmeter {
namespace {

constexpr std::array<std::string_view, 5> mode_names = {
    "auto", "estimate", "profiler", "smart", "hybrid"};
constexpr std::array<std::string_view, 4> training_phase_names = {
    "unset", "warmup", "main", "finetune"};

constexpr std::string_view ok{};

std::string lower(std::string_view text) {
  std::string out{text};
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

template <auto member>
std::string_view parse_switch(Options& options, std::string_view text) {
  const std::string word = lower(text);
  for (const std::string_view yes : {"true", "yes", "on", "1"}) {
    if (word == yes) return options.*member = true, ok;
  }
  for (const std::string_view no : {"false", "no", "off", "0"}) {
    if (word == no) return options.*member = false, ok;
  }
  return "true or false";
}

template <auto member, int least>
std::string_view parse_count(Options& options, std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < least || *value > std::numeric_limits<int>::max()) {
    return least == 0 ? "a whole number, 0 or more" : "a whole number, 1 or more";
  }
  options.*member = static_cast<int>(*value);
  return ok;
}

template <auto member>
std::string_view parse_text(Options& options, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return "text without zero bytes";
  options.*member = std::string{text};
  return ok;
}

template <auto member>
std::string_view parse_needed_text(Options& options, std::string_view text) {
  return text.empty() ? "not empty" : parse_text<member>(options, text);
}

std::string_view parse_share(Options& options, std::string_view text) {
  const auto value = parse_double(text);
  if (!value || !(*value >= 0) || *value > 1) return "a share between 0 and 1, such as 0.005";
  options.overhead_budget = *value;
  return ok;
}

std::string_view parse_mode(Options& options, std::string_view text) {
  const auto at = std::find(mode_names.begin(), mode_names.end(), lower(text));
  if (at == mode_names.end()) return "auto, estimate, profiler, smart or hybrid";
  options.mode = static_cast<Mode>(at - mode_names.begin());
  return ok;
}

std::string_view parse_training_phase(Options& options, std::string_view text) {
  const auto at = std::find(training_phase_names.begin(), training_phase_names.end(), lower(text));
  if (at == training_phase_names.end()) return "warmup, main or finetune";
  options.training_phase = static_cast<TrainingPhase>(at - training_phase_names.begin());
  return ok;
}

std::string_view parse_unmeasured(Options& options, std::string_view text) {
  if (text != "zero" && text != "empty") return "zero or empty";
  options.zero_unmeasured = text == "zero";
  return ok;
}

std::string_view parse_tensorboard_dir(Options& options, std::string_view text) {
  options.tensorboard = true;
  return parse_needed_text<&Options::tensorboard_dir>(options, text);
}

std::string_view parse_sink(Options& options, std::string_view text) {
  if (text.empty()) return "name or name:target";
  options.sinks.emplace_back(text);
  return ok;
}

std::string as_text(bool value) {
  return value ? "true" : "false";
}
std::string as_text(int value) {
  return std::to_string(value);
}
std::string as_text(double value) {
  return shortest(value);
}
std::string as_text(const std::string& value) {
  return value;
}
std::string as_text(Mode value) {
  return std::string{to_string(value)};
}
std::string as_text(TrainingPhase value) {
  return std::string{to_string(value)};
}
std::string as_text(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) text.append(text.empty() ? "" : " ").append(value);
  return text;
}

template <auto member>
std::string show(const Options& options) {
  return as_text(options.*member);
}

using O = Options;
// One row an option.
// clang-format off
constexpr auto rows = std::to_array<OptionRow>({
    {"enabled", "system.enable_perf_monitor", "--enable-perf-monitor", true, "watch the run", parse_switch<&O::enabled>, show<&O::enabled>},
    {"log_interval", "system.perf_log_interval", "--perf-log-interval", false, "steps a row of the text log, summary and console stands for", parse_count<&O::log_interval, 1>, show<&O::log_interval>},
    {"directory", "system.perf_log_dir", "--perf-log-dir", false, "run directory", parse_needed_text<&O::directory>, show<&O::directory>},
    {"console", "system.perf_console_output", "--perf-console-output", true, "a line on the terminal every log interval", parse_switch<&O::console>, show<&O::console>},
    {"memory", "system.perf_memory_tracking", "--perf-memory-tracking", true, "record memory", parse_switch<&O::memory>, show<&O::memory>},
    {"gpu_metrics", "", "--perf-gpu-metrics", true, "read power, clocks and utilization from the GPU itself", parse_switch<&O::gpu_metrics>, show<&O::gpu_metrics>},
    {"breakdown", "system.perf_breakdown", "--perf-breakdown", true, "show the phases of a step", parse_switch<&O::breakdown>, show<&O::breakdown>},
    {"max_log_files", "system.perf_max_log_files", "--perf-max-log-files", false, "starts whose logs are kept, newest first; 0 keeps all", parse_count<&O::max_log_files, 0>, show<&O::max_log_files>},
    {"mode", "monitoring.mfu_calculation_mode", "--perf-mode", false, "where FLOPs come from: auto, estimate, profiler, smart or hybrid", parse_mode, show<&O::mode>},
    {"measure_frequency", "monitoring.performance_monitoring.measure_flops_frequency monitoring.flops_profile_freq monitor.freq.flops_profile_freq", "--perf-measure-frequency", false, "effective steps between two counts in mode profiler; 0 never", parse_count<&O::measure_frequency, 0>, show<&O::measure_frequency>},
    {"training_phase", "monitoring.training_phase monitoring.performance_monitoring.training_phase", "--perf-training-phase", false, "warmup, main or finetune: picks the measuring frequency", parse_training_phase, show<&O::training_phase>},
    {"warmup_frequency", "monitoring.performance_monitoring.phase_frequencies.warmup", "", false, "effective steps between two counts during warmup", parse_count<&O::warmup_frequency, 0>, show<&O::warmup_frequency>},
    {"main_frequency", "monitoring.performance_monitoring.phase_frequencies.main", "", false, "the same during the main part", parse_count<&O::main_frequency, 0>, show<&O::main_frequency>},
    {"finetune_frequency", "monitoring.performance_monitoring.phase_frequencies.finetune", "", false, "the same during finetuning", parse_count<&O::finetune_frequency, 0>, show<&O::finetune_frequency>},
    {"initial_profiling", "monitoring.performance_monitoring.smart_mode.initial_profiling", "", false, "mode smart counts the first step", parse_switch<&O::initial_profiling>, show<&O::initial_profiling>},
    {"calibration", "monitoring.performance_monitoring.smart_mode.calibration_enabled", "", false, "mode smart corrects the estimate by later counts", parse_switch<&O::calibration>, show<&O::calibration>},
    {"recalibration_frequency", "monitoring.performance_monitoring.smart_mode.recalibration_frequency", "", false, "effective steps between two counts in mode smart", parse_count<&O::recalibration_frequency, 1>, show<&O::recalibration_frequency>},
    {"hardware_counters", "monitoring.performance_monitoring.hybrid_mode.hardware_counters_enabled", "", false, "mode hybrid reads hardware counters", parse_switch<&O::hardware_counters>, show<&O::hardware_counters>},
    {"fallback_to_profiler", "monitoring.performance_monitoring.hybrid_mode.fallback_to_profiler", "", false, "mode hybrid counts where there are no counters", parse_switch<&O::fallback_to_profiler>, show<&O::fallback_to_profiler>},
    {"overhead_budget", "monitoring.performance_monitoring.overhead_budget", "", false, "share of a step that watching it may cost", parse_share, show<&O::overhead_budget>},
    {"profile_freq", "", "--perf-profile-freq", false, "steps between two profiles of all operators, which the diagnosis rests on; 0 for none", parse_count<&O::profile_frequency, 0>, show<&O::profile_frequency>},
    {"unmeasured", "monitoring.unmeasured", "", false, "what training_log.json shows for an MFU that was not measured: empty or zero", parse_unmeasured, [](const Options& o) { return std::string{o.zero_unmeasured ? "zero" : "empty"}; }},
    {"tensorboard", "", "--tensorboard", true, "write TensorBoard event files", parse_switch<&O::tensorboard>, show<&O::tensorboard>, true},
    {"tensorboard_dir", "", "--tensorboard-dir", false, "where to write them, in a folder flopmeter", parse_tensorboard_dir, show<&O::tensorboard_dir>, true},
    {"csv", "", "--perf-csv", true, "write records as CSV too", parse_switch<&O::csv>, show<&O::csv>},
    {"prometheus_file", "", "--perf-prometheus-file", false, "file for the node exporter's textfile collector", parse_text<&O::prometheus_file>, show<&O::prometheus_file>},
    {"metrics_address", "", "--perf-metrics-address", false, "serve /metrics on host:port, such as 127.0.0.1:9095", parse_text<&O::metrics_address>, show<&O::metrics_address>},
    {"metrics_token", "", "", false, "token that clients of /metrics must send; needed beyond the loopback", parse_text<&O::metrics_token>, [](const Options& o) { return std::string{o.metrics_token.empty() ? "" : "(set)"}; }},
    {"sink", "", "--perf-sink", false, "one more output, name or name:target; may be repeated", parse_sink, show<&O::sinks>},
    {"disk_limit_mib", "", "", false, "largest size of a growing file; then every second record is left out, and so on", parse_count<&O::disk_limit_mib, 1>, show<&O::disk_limit_mib>},
    {"broadcast", "monitoring.performance_monitoring.broadcast_from_rank0", "", false, "rank 0 counts and tells the other ranks every log interval, on a process group of its own", parse_switch<&O::broadcast>, show<&O::broadcast>},
    {"broadcast_deadline", "", "", false, "milliseconds after which the broadcast is given up for good", parse_count<&O::broadcast_deadline, 1>, show<&O::broadcast_deadline>},
    {"data_parallel", "", "", false, "ranks that work on different samples; 0 what the sizes below leave of the world", parse_count<&O::data_parallel, 0>, show<&O::data_parallel>},
    {"tensor_parallel", "", "", false, "ranks that share each layer of the model; 0 not said, as below", parse_count<&O::tensor_parallel, 0>, show<&O::tensor_parallel>},
    {"pipeline_parallel", "", "", false, "ranks that hold successive layers", parse_count<&O::pipeline_parallel, 0>, show<&O::pipeline_parallel>},
    {"context_parallel", "", "", false, "ranks that share each sequence", parse_count<&O::context_parallel, 0>, show<&O::context_parallel>},
    {"expert_parallel", "", "", false, "ranks that hold different experts", parse_count<&O::expert_parallel, 0>, show<&O::expert_parallel>},
    {"replicated_modules", "", "", false, "modules that all tensor-parallel ranks run alike, such as *.router,lm_head: counted once for " "the world", parse_text<&O::replicated_modules>, show<&O::replicated_modules>},
    {"run_id", "", "--perf-run-id", false, "identifier that the ranks of a run share", parse_text<&O::run_id>, show<&O::run_id>},
    {"model", "", "", false, "name of the model, for people", parse_text<&O::model>, show<&O::model>},
});
// clang-format on

}  // namespace

std::string_view to_string(Mode mode) {
  return mode_names[static_cast<std::size_t>(mode)];
}
std::string_view to_string(TrainingPhase phase) {
  return training_phase_names[static_cast<std::size_t>(phase)];
}

std::span<const OptionRow> option_rows() {
  return rows;
}

Result<void> set_option(Options& options, std::string_view name, std::string_view value) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : rows) {
    names.push_back(row.name);
    if (row.name != name) continue;
    const std::string_view must_be = row.parse(options, value);
    if (must_be.empty()) return {};
    return Error{ErrorCode::invalid_argument,
                 "option " + std::string{name} + " is '" + printable(value) + "' but must be " +
                     std::string{must_be}};
  }
  return Error{ErrorCode::not_found,
               "option '" + printable(name) + "' is not known" + did_you_mean(name, names)};
}

Options flag_defaults() {
  Options options;
  options.enabled = false;
  options.console = false;
  return options;
}

std::string options_help() {
  const Options defaults = flag_defaults();
  std::string text;
  for (const OptionRow& row : rows) {
    std::string line = "  " + std::string{row.flag.empty() ? "" : row.flag};
    if (row.is_switch) line += " / --no-" + std::string{row.flag.substr(2)};
    if (!row.flag.empty() && !row.is_switch) line += " VALUE";
    if (row.flag.empty()) line += "(key) " + std::string{row.name};
    line.append(line.size() < 54 ? 54 - line.size() : 1, ' ').append(row.help);
    if (const std::string shown = row.show(defaults); !shown.empty()) line += " [" + shown + "]";
    text.append(line).append("\n");
  }
  return text;
}

}  // namespace flopmeter
