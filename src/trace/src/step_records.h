// SPDX-License-Identifier: Apache-2.0
//
// The steps of a trace as records and profiles of a live run.
#pragma once

#include "op_flops.h"
#include "steps.h"
#include "work.h"

#include <flopmeter/trace/trace_report.h>

#include <span>

namespace flopmeter {

/// Fills `report.profiles`: one per step with work, or one of the whole trace.
void make_profiles(const Trace& trace,
                   const Links& links,
                   const OpFlops& flops,
                   std::span<const Work> work,
                   std::span<const TraceStep> steps,
                   std::span<const std::uint32_t> device_events,
                   DeviceReport& report);

/// Fills `report.records`, the MFU of each step, and that of the report.
void make_records(const Trace& trace, DeviceReport& report);

}  // namespace flopmeter
