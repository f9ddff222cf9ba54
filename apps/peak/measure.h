// SPDX-License-Identifier: Apache-2.0
//
// The rate of matrix products that this machine reaches through torch.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace flopmeter {

struct MeasuredPeak {
  Dtype dtype = Dtype::other;
  FlopsPerSecond rate;    ///< of the best size
  std::int64_t size = 0;  ///< of the square matrices
};

using Progress = std::function<void(Dtype dtype, std::int64_t size, FlopsPerSecond rate)>;

/// Sweeps sizes for about `budget` and takes the best median; empty where torch has no such product
/// here.
std::optional<MeasuredPeak> measure_peak(Dtype dtype, Seconds budget, const Progress& progress);

int thread_count();
std::string torch_version();

}  // namespace flopmeter
