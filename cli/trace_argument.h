// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/trace/trace_report.h>

#include <string>
#include <vector>

namespace flopmeter {

/// Reads the traces that `paths` name, files or directories, and compares their ranks.
/// Shows progress on a terminal.  A file that is not a trace is an error if it was named
/// explicitly, and a note if others of its directory are traces.
Result<TraceReport> read_trace_arguments(const std::vector<std::string>& paths,
                                         const TraceReportOptions& options);

/// The rank that a file name states: "rank3", "rank-3", "rank_3", "worker3"; empty if none.
std::optional<int> rank_of_file_name(std::string_view name);

}  // namespace flopmeter
