// SPDX-License-Identifier: Apache-2.0
//
// The ranks in the page's data.
#pragma once

#include "rank_map.h"

#include <flopmeter/analysis/rank_comparison.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/report/run_overview.h>

#include <vector>

namespace flopmeter {

/// "ranks": bars of all, and rows of the slowest.
void write_ranks(JsonWriter& json,
                 const RunOverview& overview,
                 const std::vector<RankFigures>& judged);

void write_rank_map(JsonWriter& json, const RankMap::Picture& picture);

}  // namespace flopmeter
