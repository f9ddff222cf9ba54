// SPDX-License-Identifier: Apache-2.0
//
// The table of options; to add one, add a row.
#include <flopmeter/core/dtype.h>
#include <flopmeter/core/json_writer.h>
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
    return least == 0 ? "an integer, 0 or greater" : "an integer, 1 or greater";
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
  if (!value || !(*value >= 0) || *value > 1) return "a fraction between 0 and 1, such as 0.005";
  options.overhead_budget = *value;
  return ok;
}

std::string_view parse_mode(Options& options, std::string_view text) {
  const auto at = std::find(mode_names.begin(), mode_names.end(), lower(text));
  if (at == mode_names.end()) return "auto, estimate, profiler, smart, or hybrid";
  options.mode = static_cast<Mode>(at - mode_names.begin());
  return ok;
}

std::string_view parse_training_phase(Options& options, std::string_view text) {
  const auto at = std::find(training_phase_names.begin(), training_phase_names.end(), lower(text));
  if (at == training_phase_names.end()) return "warmup, main, or finetune";
  options.training_phase = static_cast<TrainingPhase>(at - training_phase_names.begin());
  return ok;
}

std::string_view parse_peak(Options& options, std::string_view text) {
  const auto value = parse_double(text);
  const bool positive = value && *value >= 1e-6 && *value <= 1e9;
  if (text != "measured" && !positive) return "a positive number of TFLOP/s, or measured";
  options.peak = std::string{text};
  return ok;
}

std::string_view parse_dtype_name(Options& options, std::string_view text) {
  if (!parse_dtype(text)) return "fp64, fp32, tf32, bf16, fp16, fp8, fp4, or int8";
  options.dtype = std::string{text};
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

std::string_view parse_log_format(Options& options, std::string_view text) {
  if (text != "text" && text != "json" && text != "both") return "text, json, or both";
  options.log_format = std::string{text};
  return ok;
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
// One row per option: name, native, switch, help, parse, show.  The native ones come first, in the
// order of --help.
// clang-format off
constexpr auto rows = std::to_array<OptionRow>({
    {"directory", true, false, "directory of the run", parse_needed_text<&O::directory>, show<&O::directory>},
    {"model", true, false, "name of the model in the reports", parse_text<&O::model>, show<&O::model>},
    {"peak", true, false, "TFLOP/s of one device, or measured", parse_peak, show<&O::peak>},
    {"device", true, false, "device name, see `flopmeter devices`", parse_text<&O::device>, show<&O::device>},
    {"dtype", true, false, "dtype of the matmuls", parse_dtype_name, show<&O::dtype>},
    {"mode", true, false, "source of FLOPs: auto, estimate, profiler, smart, or hybrid", parse_mode, show<&O::mode>},
    {"convention", true, false, "FLOP-counting convention, see `flopmeter conventions`", parse_needed_text<&O::convention>, show<&O::convention>},
    {"log_interval", true, false, "steps per row of the text log, summary, and console", parse_count<&O::log_interval, 1>, show<&O::log_interval>},
    {"console", true, true, "print a line every log interval", parse_switch<&O::console>, show<&O::console>},
    {"tensorboard", true, true, "write TensorBoard event files", parse_switch<&O::tensorboard>, show<&O::tensorboard>},
    {"csv", true, true, "write the records as CSV too", parse_switch<&O::csv>, show<&O::csv>},
    {"sink", true, false, "further output, name or name:target; repeatable", parse_sink, show<&O::sinks>},
    {"metrics_address", true, false, "serve /metrics on host:port, such as 127.0.0.1:9095", parse_text<&O::metrics_address>, show<&O::metrics_address>},
    {"overhead_budget", true, false, "maximum overhead, as a fraction of step time", parse_share, show<&O::overhead_budget>},
    {"kineto_step", true, false, "record this step of each process with the PyTorch profiler; 0: none", parse_count<&O::kineto_step, 0>, show<&O::kineto_step>},
    {"run_id", true, false, "identifier of the run, shared by its ranks and restarts", parse_text<&O::run_id>, show<&O::run_id>},
    {"total_steps", false, false, "number of the last step, for the estimated time left (0: unknown)", parse_count<&O::total_steps, 0>, show<&O::total_steps>},
    {"enabled", false, true, "monitor the run", parse_switch<&O::enabled>, show<&O::enabled>},
    {"memory", false, true, "record memory", parse_switch<&O::memory>, show<&O::memory>},
    {"gpu_metrics", false, true, "read power, clocks, and utilization from the GPU driver", parse_switch<&O::gpu_metrics>, show<&O::gpu_metrics>},
    {"first_row", false, true, "write a row for the first step, too", parse_switch<&O::first_row>, show<&O::first_row>},
    {"log_format", false, false, "files of the log rows: text, json, or both", parse_log_format, show<&O::log_format>},
    {"breakdown", false, true, "show the phases of a step", parse_switch<&O::breakdown>, show<&O::breakdown>},
    {"max_log_files", false, false, "number of past runs whose logs are kept; 0: all", parse_count<&O::max_log_files, 0>, show<&O::max_log_files>},
    {"measure_frequency", false, false, "process steps between counts in mode profiler; 0: never", parse_count<&O::measure_frequency, 0>, show<&O::measure_frequency>},
    {"training_phase", false, false, "warmup, main, or finetune: selects the measuring frequency", parse_training_phase, show<&O::training_phase>},
    {"warmup_frequency", false, false, "process steps between counts during warmup", parse_count<&O::warmup_frequency, 0>, show<&O::warmup_frequency>},
    {"main_frequency", false, false, "process steps between counts in the main phase", parse_count<&O::main_frequency, 0>, show<&O::main_frequency>},
    {"finetune_frequency", false, false, "process steps between counts during finetuning", parse_count<&O::finetune_frequency, 0>, show<&O::finetune_frequency>},
    {"initial_profiling", false, true, "mode smart counts the first step", parse_switch<&O::initial_profiling>, show<&O::initial_profiling>},
    {"calibration", false, true, "mode smart corrects the estimate with later counts", parse_switch<&O::calibration>, show<&O::calibration>},
    {"recalibration_frequency", false, false, "process steps between counts in mode smart", parse_count<&O::recalibration_frequency, 1>, show<&O::recalibration_frequency>},
    {"hardware_counters", false, true, "mode hybrid reads hardware counters", parse_switch<&O::hardware_counters>, show<&O::hardware_counters>},
    {"fallback_to_profiler", false, true, "mode hybrid counts if there are no hardware counters", parse_switch<&O::fallback_to_profiler>, show<&O::fallback_to_profiler>},
    {"profile_freq", false, false, "steps between operator profiles, which the diagnosis uses; 0: none", parse_count<&O::profile_frequency, 0>, show<&O::profile_frequency>},
    {"unmeasured", false, false, "value in training_log.json for an MFU that was not measured: empty or zero", parse_unmeasured, [](const Options& o) { return std::string{o.zero_unmeasured ? "zero" : "empty"}; }},
    {"tensorboard_dir", false, false, "parent of the TensorBoard folder flopmeter", parse_tensorboard_dir, show<&O::tensorboard_dir>},
    {"prometheus_file", false, false, "file for the textfile collector of the node exporter", parse_text<&O::prometheus_file>, show<&O::prometheus_file>},
    {"metrics_token", false, false, "token that clients of /metrics must send; required unless the address is a loopback address", parse_text<&O::metrics_token>, [](const Options& o) { return std::string{o.metrics_token.empty() ? "" : "(set)"}; }},
    {"disk_limit_mib", false, false, "size limit of a growing file in MiB; beyond it, every second record is dropped, and so on", parse_count<&O::disk_limit_mib, 1>, show<&O::disk_limit_mib>},
    {"broadcast", false, true, "rank 0 counts and broadcasts every log interval, on a separate process group", parse_switch<&O::broadcast>, show<&O::broadcast>},
    {"broadcast_deadline", false, false, "broadcast timeout in ms; disabled after the first timeout", parse_count<&O::broadcast_deadline, 1>, show<&O::broadcast_deadline>},
    {"data_parallel", false, false, "data-parallel size (0: derived from the other sizes)", parse_count<&O::data_parallel, 0>, show<&O::data_parallel>},
    {"tensor_parallel", false, false, "tensor-parallel size (0: detected)", parse_count<&O::tensor_parallel, 0>, show<&O::tensor_parallel>},
    {"pipeline_parallel", false, false, "pipeline-parallel size (0: detected)", parse_count<&O::pipeline_parallel, 0>, show<&O::pipeline_parallel>},
    {"context_parallel", false, false, "context-parallel size (0: detected)", parse_count<&O::context_parallel, 0>, show<&O::context_parallel>},
    {"expert_parallel", false, false, "expert-parallel size (0: detected)", parse_count<&O::expert_parallel, 0>, show<&O::expert_parallel>},
    {"replicated_modules", false, false, "modules that every tensor-parallel rank runs, such as *.router,lm_head; counted once", parse_text<&O::replicated_modules>, show<&O::replicated_modules>},
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
                 "is '" + printable(value) + "' but must be " + std::string{must_be},
                 std::string{name}};
  }
  return Error{ErrorCode::invalid_argument,
               "unknown option '" + printable(name) + "'" + did_you_mean(name, names)};
}

std::string options_text(const Options& options) {
  const Options defaults;
  std::string text;
  JsonWriter json{text};
  json.begin_object().key("flopmeter").begin_object();
  for (const OptionRow& row : rows) {
    const std::string value = row.show(options);
    if (value == row.show(defaults)) continue;
    json.key(row.name);
    if (row.name == "sink") {
      json.begin_array();
      for (const std::string& sink : options.sinks) json.value(sink);
      json.end_array();
    } else {
      json.value(row.name == "metrics_token" ? options.metrics_token : value);
    }
  }
  json.end_object().end_object();
  return text;
}

}  // namespace flopmeter
