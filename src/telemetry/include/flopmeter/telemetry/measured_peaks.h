// SPDX-License-Identifier: Apache-2.0
//
// Measured peaks, kept for later runs in the user's cache directory, one entry for each processor,
// number of threads and torch version.
#pragma once

#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

struct MeasuredPeak {
  Dtype dtype = Dtype::other;
  FlopsPerSecond rate;                 ///< of the best size
  std::int64_t size = 0;               ///< of the square matrices
  std::vector<ShapeRate> shapes = {};  ///< and what smaller products reach
};

struct MeasuredMachine {
  std::string processor;
  int threads = 0;
  std::string torch;
  std::vector<MeasuredPeak> peaks;
  std::optional<double> memory_bytes_per_second;  ///< read and written
};

/// "AMD EPYC 7763"; "unknown processor" where the system does not say.
std::string processor_name();

/// The measurement as JSON text.
std::string to_json(const MeasuredMachine& machine);

/// Adds or replaces the machine's entry; returns the file.
Result<std::string> store_measured_peaks(const MeasuredMachine& machine);

/// The newest measurement of this machine's processor, with that many threads if it is said; an
/// error says how to get one.
Result<PeakTable> load_measured_peaks(std::optional<int> threads = {});

}  // namespace flopmeter
