// SPDX-License-Identifier: Apache-2.0
//
// Measured peaks, kept for later runs in the user's cache directory, one entry for each processor,
// number of threads and torch version.
#pragma once

#include "measure.h"

#include <flopmeter/core/result.h>

#include <string>
#include <vector>

namespace flopmeter {

struct MeasuredMachine {
  std::string processor;
  int threads = 0;
  std::string torch;
  std::vector<MeasuredPeak> peaks;
};

/// "AMD EPYC 7763"; "unknown processor" where the system does not say.
std::string processor_name();

/// The measurement as JSON text.
std::string to_json(const MeasuredMachine& machine);

/// Adds or replaces the machine's entry; returns the file.
Result<std::string> store(const MeasuredMachine& machine);

}  // namespace flopmeter
