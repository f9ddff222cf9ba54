// SPDX-License-Identifier: Apache-2.0
//
// What flopmeter can use on this machine: one check for each thing, with the reason and the recommendation
// where it is missing.
#pragma once

#include <string>
#include <vector>

namespace flopmeter {

struct Check {
  std::string name;
  bool ok = false;
  std::string detail;  ///< what was found, or why not
  std::string recommendation;  ///< empty where there is nothing to do
};

/// What the program itself sees: helpers, counters, libraries, peaks, outputs.
std::vector<Check> check_machine();

/// What Python sees: torch, the adapter, frameworks, loggers.  `python`: the interpreter to ask.
std::vector<Check> check_python(const std::string& python);

}  // namespace flopmeter
