// SPDX-License-Identifier: Apache-2.0
//
// The rates of matrix products and of copies that this machine reaches through torch.
#pragma once

#include <flopmeter/telemetry/measured_peaks.h>

#include <functional>
#include <optional>
#include <string>

namespace flopmeter {

using PeakProgress = std::function<void(Dtype dtype, std::int64_t size, FlopsPerSecond rate)>;

/// Sweeps sizes for about `budget` and takes the best median; empty where torch has no such product
/// here.
std::optional<MeasuredPeak> measure_peak(Dtype dtype, Seconds budget, const PeakProgress& progress);

/// Bytes a second that copying a tensor too large for any cache reads and writes.
double measure_memory_speed(Seconds budget);

/// Threads that torch computes with, and its version: what a measurement holds for.
int torch_threads();
std::string torch_version();

}  // namespace flopmeter
