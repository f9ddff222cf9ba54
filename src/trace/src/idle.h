// SPDX-License-Identifier: Apache-2.0
//
// Why a device was idle: the activity of the host in each idle interval.
#pragma once

#include "intervals.h"
#include "links.h"

#include <span>
#include <vector>

namespace flopmeter {

/// An idle interval and its cause.
struct ExplainedInterval {
  TimeWindow time;
  IdleCause cause = IdleCause::unknown;
  TraceNs data_loading = 0;  ///< part of it, if the cause is the host's
};

std::vector<ExplainedInterval> explain_idle(const Trace& trace,
                                            const Links& links,
                                            std::span<const IdleInterval> intervals);

/// The idle time of `window`, `idle` nanoseconds, by cause.  Time outside of the intervals is
/// `unknown`.
IdleTimes idle_within(std::span<const ExplainedInterval> intervals,
                      TimeWindow window,
                      TraceNs idle);

}  // namespace flopmeter
