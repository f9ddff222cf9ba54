// SPDX-License-Identifier: Apache-2.0
//
// Notes for readers of the figures: skipped data, and how to record missing data.
#pragma once

#include "links.h"
#include "op_flops.h"
#include "steps.h"

#include <flopmeter/trace/trace_report.h>

#include <span>

namespace flopmeter {

void add_notes(const Trace& trace,
               const Links& links,
               const OpFlops& flops,
               std::span<const TraceStep> steps,
               DeviceReport& report);

}  // namespace flopmeter
