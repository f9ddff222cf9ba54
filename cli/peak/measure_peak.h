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

/// Sweeps sizes for about `budget` and takes the best median; empty if torch has no such matmul
/// here.
std::optional<MeasuredPeak> measure_peak(Dtype dtype, Seconds budget, const PeakProgress& progress);

/// Bytes read and written per second by a copy of a tensor that exceeds all caches.
double measure_memory_speed(Seconds budget);

/// Threads that torch computes with, and its version: what a measurement holds for.
int torch_threads();
std::string torch_version();

}  // namespace flopmeter
