// SPDX-License-Identifier: Apache-2.0
//
// Time and FLOPs by module of the model: by the calls of nn.Module if the trace has stacks, else by
// the annotations of the program.
#pragma once

#include "links.h"
#include "op_flops.h"

#include <flopmeter/trace/trace_report.h>

#include <span>
#include <vector>

namespace flopmeter {

/// Of a device's events, longest first; empty if the trace has neither stacks nor annotations.
/// Backward work belongs to the module of its forward operator.
std::vector<ModuleTime> times_by_module(const Trace& trace,
                                        const Links& links,
                                        const OpFlops& flops,
                                        std::span<const std::uint32_t> device_events);

}  // namespace flopmeter
