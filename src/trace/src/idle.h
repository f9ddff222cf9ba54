// SPDX-License-Identifier: Apache-2.0
//
// Why a device was idle: what the host did while a gap lasted.
#pragma once

#include "intervals.h"
#include "links.h"

#include <span>
#include <vector>

namespace flopmeter {

/// One gap with its time by cause.
struct ExplainedGap {
  TimeWindow time;
  IdleCause cause = IdleCause::unknown;
  TraceNs data_loading = 0;  ///< part of it, if the cause is the host's
};

std::vector<ExplainedGap> explain_gaps(const Trace& trace,
                                       const Links& links,
                                       std::span<const IdleGap> gaps);

/// The parts of the gaps within `window`, which has `idle` nanoseconds of them; idle time outside
/// of the gaps is `unknown`.
IdleTimes idle_within(std::span<const ExplainedGap> gaps, TimeWindow window, TraceNs idle);

}  // namespace flopmeter
