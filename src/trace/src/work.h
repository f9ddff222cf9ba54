// SPDX-License-Identifier: Apache-2.0
//
// The kind of each piece of device work: FLOPs that are counted, no FLOPs, or FLOPs that have no
// cost rule.
#pragma once

#include "links.h"
#include "op_flops.h"

#include <flopmeter/core/op_profile.h>
#include <flopmeter/core/phase.h>

#include <cstdint>
#include <string>
#include <vector>

namespace flopmeter {

struct Work {
  OpKind kind = OpKind::memory;
  std::uint32_t counted = no_event;  ///< index into OpFlops::ops
  Phase phase = Phase::forward;
  bool backward = false;
  TextId name = no_text;  ///< of the operator, else of the graph launch, else of the kernel
};

/// By the index of the device event; communication is `memory`.
std::vector<Work> classify_work(const Trace& trace, const Links& links, const OpFlops& flops);

}  // namespace flopmeter
