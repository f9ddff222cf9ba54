// SPDX-License-Identifier: Apache-2.0
//
// The monitor's options on the command line of a command.
#pragma once

#include "command.h"

#include <deque>
#include <string>
#include <vector>

namespace flopmeter {

struct Options;
struct OptionRow;

/// `--log-interval 5`, `--no-console`, `--config FILE`: the native rows of the option table.
class OptionFlags {
 public:
  void add_to(Arguments& app);

  /// Options from the environment, then the file, then the flags.
  [[nodiscard]] Result<Options> options() const;

 private:
  struct Flag {
    const OptionRow* row = nullptr;
    std::vector<std::string> values;
    bool toggled = false;  ///< a switch was turned from its default
  };

  std::string config_;
  std::deque<Flag> flags_;
};

}  // namespace flopmeter
