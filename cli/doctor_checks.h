// SPDX-License-Identifier: Apache-2.0
//
// Checks of the environment: what flopmeter can use on this machine; for what is missing, the
// reason and a recommendation.
#pragma once

#include <string>
#include <vector>

namespace flopmeter {

struct Check {
  std::string name;
  bool ok = false;
  std::string detail;          ///< what was found, or why it is missing
  std::string recommendation;  ///< empty: nothing to do
};

/// Helper programs, counters, libraries, peaks, outputs.
std::vector<Check> check_machine();

/// torch, the adapter, frameworks, loggers, as the interpreter `python` finds them.
std::vector<Check> check_python(const std::string& python);

}  // namespace flopmeter
