// SPDX-License-Identifier: Apache-2.0
//
// Options of the monitor, and the one list from which code, YAML, flags, Hydra-style words,
// environment and --help follow.
#pragma once

#include <flopmeter/core/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// How a step's FLOPs are found.
enum class Mode : std::uint8_t {
  automatic,  ///< count every step while that stays within the budget, else smart
  estimate,   ///< from the model's configuration alone
  profiler,   ///< count every N steps, say nothing between
  smart,      ///< count now and then, calibrate the estimate between
  hybrid,     ///< hardware counters, else as profiler
};
std::string_view to_string(Mode mode);

/// Part of a training run: picks how often FLOPs are measured.
enum class TrainingPhase : std::uint8_t { unset, warmup, main, finetune };
std::string_view to_string(TrainingPhase phase);

struct Options {
  bool enabled = true;
  std::string directory = "logs/perf_monitor";
  int log_interval = 10;
  bool console = true;
  bool memory = true;
  bool gpu_metrics = true;
  bool breakdown = false;
  int max_log_files = 10;

  Mode mode = Mode::automatic;
  int measure_frequency = 500;  ///< effective steps between two counts in mode profiler; 0: never
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
  int profile_frequency = 1000;   ///< steps between two profiles of all operators; 0: none
  bool zero_unmeasured = false;  ///< write 0 for an MFU that was not measured

  bool tensorboard = false;
  std::string tensorboard_dir;  ///< empty: <directory>/tensorboard
  bool csv = false;
  std::string prometheus_file;     ///< empty: none
  std::string metrics_address;     ///< "127.0.0.1:9095"; empty: no server
  std::string metrics_token;       ///< needed beyond the loopback
  std::vector<std::string> sinks;  ///< more of "name:target"
  int disk_limit_mib = 256;

  bool broadcast = false;         ///< rank 0 measures and tells the others; needs an Exchange
  int broadcast_deadline = 1000;  ///< milliseconds
  int data_parallel = 0;    ///< ranks that work on different samples; 0: what the others leave
  int tensor_parallel = 0;  ///< this and those below, 0: as the Connections say
  int pipeline_parallel = 0;
  int context_parallel = 0;
  int expert_parallel = 0;
  std::string replicated_modules;  ///< names with * of modules that tensor-parallel ranks all run

  std::string run_id;  ///< empty: that of the directory, or a new one
  std::string model;   ///< the model's name, for people

  std::vector<std::string> warnings;  ///< what was odd about the settings; said once at the start
};

/// One option in all its spellings.
struct OptionRow {
  std::string_view name;   ///< "log_interval"; FLOPMETER_LOG_INTERVAL; key under `flopmeter:`
  std::string_view yaml;   ///< dotted paths of other tools' files that mean the same; one or more
  std::string_view flag;   ///< "--perf-log-interval"
  bool is_switch = false;  ///< takes no value and has a --no- form
  std::string_view help;
  /// Sets the option; an empty text on success, else what a value must be.
  std::string_view (*parse)(Options& options, std::string_view text) = nullptr;
  /// The current value as text.
  std::string (*show)(const Options& options) = nullptr;
  bool shared =
      false;  ///< the training program knows the flag too: it is read, and left where it is
};

std::span<const OptionRow> option_rows();

/// Where the flags and the `system:` block start from: off, and no console line, as FlagScale has
/// it.
Options flag_defaults();

/// Sets one option by its name; an unknown name is an error with the nearest one.
Result<void> set_option(Options& options, std::string_view name, std::string_view value);

/// Takes what concerns the monitor from a YAML text: blocks `flopmeter`, `monitoring`,
/// `monitor.freq`, and the keys
/// `*perf_*` of `system`, at the top or under `train`.  All else is somebody else's.
Result<void> apply_yaml(Options& options, std::string_view text, std::string_view file = "YAML");
Result<void> apply_yaml_file(Options& options, const std::string& path);

/// Takes flags and words like `train.system.perf_log_interval=10` from a command line and returns
/// the rest.
Result<std::vector<std::string>> apply_arguments(Options& options,
                                                 std::span<const std::string> arguments);

/// Takes FLOPMETER_<NAME> from `environment` ("KEY=value", ended by null, as `environ`).  A name
/// that is not known becomes a warning with the nearest one.
Result<void> apply_environment(Options& options, const char* const* environment);

/// One line an option, for --help.
std::string options_help();

}  // namespace flopmeter
