// SPDX-License-Identifier: Apache-2.0
//
// The time budget and the findings of a trace, by the same analysis as a live run's.
#pragma once

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/trace/trace_report.h>

#include <string>

namespace flopmeter {

/// The budget is the mean over the ranks; the findings are of all ranks, those of the budget first.
Diagnosis diagnose_trace(const TraceReport& report);

/// The diagnosis of a trace's first rank, for comparison with another trace or run.
Result<Diagnosis> diagnose_trace_file(const std::string& path);

}  // namespace flopmeter
