// SPDX-License-Identifier: Apache-2.0
//
// The data of the page: the same for a file and for the dashboard.
#pragma once

#include "run_index.h"

#include <flopmeter/report/recorded_step.h>
#include <flopmeter/report/report.h>

#include <optional>
#include <string>

namespace flopmeter {

/// The document of one run ("flopmeter.report/2"), with the step that it recorded, if any.
std::string report_json(const RunIndex& index,
                        const ReportOptions& options,
                        const std::optional<DeviceReport>& recorded = std::nullopt);

/// The same of one rank and its newest 10,000 records; empty if the run does not have the rank.
std::optional<std::string> rank_json(const RunIndex& index, int rank, const ReportOptions& options);

/// The curves of the steps from `first` to `last` in detail, as `timeline` of the document; null if
/// that would take too long.
std::string window_json(const RunIndex& index, std::int64_t first, std::int64_t last);

/// The own time of ranks over the run, slowest rank of each row.
std::string rank_map_json(const RunIndex& index,
                          std::optional<long long> first_rank,
                          std::optional<long long> ranks);

/// The curves as a table: one line for each bucket of steps.
std::string curves_csv(const Timeline& timeline);

}  // namespace flopmeter
