// SPDX-License-Identifier: Apache-2.0
//
// Sums of events whose category the analysis does not interpret.
#pragma once

#include <flopmeter/trace/trace_report.h>

#include <vector>

namespace flopmeter {

/// By category and process, busiest first.
std::vector<OtherWork> summarize_other_work(const Trace& trace);

}  // namespace flopmeter
