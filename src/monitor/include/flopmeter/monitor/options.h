// SPDX-License-Identifier: Apache-2.0
//
// Options of the monitor, and the one table that YAML, environment, flags, and --help follow from.
// Spellings of other tools: compat_options.h.
#pragma once

#include <flopmeter/core/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Where the FLOPs of a step come from.
enum class Mode : std::uint8_t {
  automatic,  ///< counts every step while the cost stays within the budget, else smart
  estimate,   ///< from the model's configuration only
  profiler,   ///< counts every N steps; unknown between them
  smart,      ///< counts rarely; a calibrated estimate between
  hybrid,     ///< hardware counters, else as profiler
};
std::string_view to_string(Mode mode);

/// Stage of a training run; selects how often FLOPs are measured.
enum class TrainingPhase : std::uint8_t { unset, warmup, main, finetune };
std::string_view to_string(TrainingPhase phase);

struct Options {
  bool enabled = true;
  std::string directory;  ///< empty: see choose_run_directory()
  int log_interval = 10;
  int total_steps = 0;  ///< number of the last step that the run plans; 0: unknown
  bool console = true;
  bool memory = true;
  bool gpu_metrics = true;
  bool breakdown = false;
  bool first_row = false;           ///< also a row for the first step, as in FlagScale
  std::string log_format = "both";  ///< of the files of rank 0: text, json, or both
  int max_log_files = 10;

  Mode mode = Mode::automatic;
  int measure_frequency = 500;  ///< process steps between counts in mode profiler; 0: never
  TrainingPhase training_phase = TrainingPhase::unset;
  int warmup_frequency = 1000;
  int main_frequency = 500;
  int finetune_frequency = 200;
  bool initial_profiling = true;
  bool calibration = true;
  int recalibration_frequency = 1000;
  bool hardware_counters = true;
  bool fallback_to_profiler = true;
  double overhead_budget = 0.005;
  int profile_frequency = 1000;  ///< steps between operator profiles; 0: none
  int kineto_step = 0;           ///< the step of the process that a StepTracer records; 0: none
  bool zero_unmeasured = false;  ///< writes 0 for an MFU that was not measured

  bool tensorboard = false;
  std::string tensorboard_dir;  ///< empty: <directory>/tensorboard
  bool csv = false;
  std::string prometheus_file;     ///< empty: none
  std::string metrics_address;     ///< "127.0.0.1:9095"; empty: no server
  std::string metrics_token;       ///< required unless the address is a loopback address
  std::vector<std::string> sinks;  ///< further outputs, "name" or "name:target"
  int disk_limit_mib = 256;

  bool broadcast = false;         ///< rank 0 measures for all ranks; needs an Exchange
  int broadcast_deadline = 1000;  ///< milliseconds
  int data_parallel = 0;          ///< 0: derived from the world size and the sizes below
  int tensor_parallel = 0;        ///< 0, here and below: from the Connections
  int pipeline_parallel = 0;
  int context_parallel = 0;
  int expert_parallel = 0;
  std::string replicated_modules;  ///< patterns of modules that every tensor-parallel rank runs

  std::string run_id;  ///< empty: that of the directory, or a new one
  std::string model;   ///< display name of the model

  // For the program that finds the peaks and starts the monitor.
  std::string peak;    ///< TFLOP/s of one device, or "measured"; empty: from the catalog
  std::string device;  ///< name in the catalog; empty: detected
  std::string dtype;   ///< compute dtype; empty: that of the parameters
  std::string convention = "model-v1";

  std::vector<std::string> warnings;  ///< doubtful settings; reported once at the start
};

/// One option.
struct OptionRow {
  std::string_view name;  ///< "log_interval"; FLOPMETER_LOG_INTERVAL; key under `flopmeter:`
  bool native = false;    ///< a flag of `flopmeter run`; the others are set in a file
  bool is_switch = false;
  std::string_view help;
  /// Sets the option; returns an empty text, or what a value must be.
  std::string_view (*parse)(Options& options, std::string_view text) = nullptr;
  /// The current value as text.
  std::string (*show)(const Options& options) = nullptr;
};

std::span<const OptionRow> option_rows();

/// Sets one option by its name; an unknown name is an error that suggests similar ones.
Result<void> set_option(Options& options, std::string_view name, std::string_view value);

/// Reads the monitor's keys from a YAML text: the block `flopmeter` and the blocks of
/// compat_options.h, at the top or under `train`.  Ignores everything else.
Result<void> apply_yaml(Options& options, std::string_view text, std::string_view file = "YAML");
Result<void> apply_yaml_file(Options& options, const std::string& path);

/// Reads FLOPMETER_<NAME> from `environment` ("KEY=value", ended by null, as `environ`).  An
/// unknown name becomes a warning.  If FLOPMETER_CONFIG is set, it holds all options, as
/// `options_text` writes them, and the other variables are not read.
Result<void> apply_environment(Options& options, const char* const* environment);

/// The options that differ from their defaults, as text that `apply_yaml` reads.
std::string options_text(const Options& options);

}  // namespace flopmeter
