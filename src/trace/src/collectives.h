// SPDX-License-Identifier: Apache-2.0
//
// Collectives of one device: how many, how large, how fast.
#pragma once

#include <flopmeter/trace/trace_report.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Groups of equal calls, the longest first.
std::vector<CollectiveSummary> summarize_collectives(const Trace& trace,
                                                     std::span<const std::uint32_t> device_events);

/// Each call separately, earliest first; `summaries` are those of the same events.
std::vector<CollectiveCall> list_collectives(const Trace& trace,
                                             std::span<const std::uint32_t> device_events,
                                             std::span<const CollectiveSummary> summaries);

/// Sets the bandwidth of equal calls that took `time` altogether.
void set_bandwidth(CollectiveSummary& summary, TraceNs time);

/// The kind of a collective by the name of its kernel: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
/// is an "allreduce".  The name itself if it states none.
std::string collective_kind(std::string_view kernel);

}  // namespace flopmeter
