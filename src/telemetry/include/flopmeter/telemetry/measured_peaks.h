// SPDX-License-Identifier: Apache-2.0
//
// Measured peaks in the user's cache directory, one entry per processor, number of threads, and
// torch version.
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
  FlopsPerSecond rate;                 ///< at the best size
  std::int64_t size = 0;               ///< of the square matrices
  std::vector<ShapeRate> shapes = {};  ///< rates of smaller matmuls
};

struct MeasuredMachine {
  std::string processor;
  int threads = 0;
  std::string torch;
  std::vector<MeasuredPeak> peaks;
  std::optional<double> memory_bytes_per_second;  ///< bytes read and written
};

/// "AMD EPYC 7763"; "unknown processor" if the system does not report it.
std::string processor_name();

/// The measurement as JSON text.
std::string to_json(const MeasuredMachine& machine);

/// Adds or replaces the entry of this machine; returns the file.
Result<std::string> store_measured_peaks(const MeasuredMachine& machine);

/// The latest measurement for this processor, and for this number of threads if specified. The
/// error states how to measure.
Result<PeakTable> load_measured_peaks(std::optional<int> threads = {});

}  // namespace flopmeter
