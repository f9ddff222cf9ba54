// SPDX-License-Identifier: Apache-2.0
//
// The step that a run recorded with the PyTorch profiler (option kineto_step).
#pragma once

#include <flopmeter/runstore/run_directory.h>
#include <flopmeter/trace/trace_report.h>

#include <optional>

namespace flopmeter {

/// The newest such step of a rank; empty if there is none that can be read.
std::optional<DeviceReport> read_run_trace(const RunDirectory& run, int rank);

}  // namespace flopmeter
