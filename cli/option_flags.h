// SPDX-License-Identifier: Apache-2.0
//
// The monitor's options on the command line of a command, and as environment for a process below.
#pragma once

#include "command.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace flopmeter {

/// `--log-interval 5`, `--no-console`, `--config FILE`: the rows of the option list as flags.
class OptionFlags {
 public:
  void add_to(CLI::App& app);

  /// FLOPMETER_<NAME> for each option that is not as it would be by itself: those that the
  /// environment or the file sets, then those that were given.  The directory is absolute: the
  /// process may go elsewhere.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> environment() const;

 private:
  std::string config_;
  std::map<std::string, std::string> given_;  ///< option name to value; empty: not given
};

}  // namespace flopmeter
