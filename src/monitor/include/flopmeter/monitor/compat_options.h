// SPDX-License-Identifier: Apache-2.0
//
// Spellings of the monitor's options in other tools: keys of FlagScale's YAML files and of the
// `monitoring` block, FlagScale's flags, and Hydra's key=value words.
#pragma once

#include <flopmeter/monitor/options.h>

namespace flopmeter {

/// One option in other tools.
struct CompatName {
  std::string_view option;  ///< name in option_rows()
  std::string_view yaml;    ///< dotted paths, separated by spaces
  std::string_view flag;    ///< "--perf-log-interval"; empty: none
  bool shared = false;      ///< the training program has the flag too: it is read and kept
};

std::span<const CompatName> compat_names();

/// Defaults of FlagScale's flags and `system` block: disabled, without console lines.
Options flag_defaults();

/// Reads flags and words such as `train.system.perf_log_interval=10` from a command line; returns
/// the other words.
Result<std::vector<std::string>> apply_arguments(Options& options,
                                                 std::span<const std::string> arguments);

/// One line per flag, for --help.
std::string flags_help();

}  // namespace flopmeter
