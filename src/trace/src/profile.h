// SPDX-License-Identifier: Apache-2.0
//
// The operator profile of a trace: the same type that a profiled step of a live run gives.
#pragma once

#include "op_flops.h"
#include "work.h"

#include <flopmeter/core/op_profile.h>

#include <span>
#include <vector>

namespace flopmeter {

/// Operators with the device time of their kernels.  Communication is not part of it.
OpProfile profile_device(const Trace& trace,
                         const OpFlops& flops,
                         std::span<const Work> work,
                         std::span<const std::uint32_t> device_events);

/// Operators with their own time on the host, for a trace without device work.
OpProfile profile_host(const Trace& trace,
                       const Links& links,
                       const OpFlops& flops,
                       std::span<const std::uint32_t> host_events);

}  // namespace flopmeter
