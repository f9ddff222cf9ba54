// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page's data that are pictures.
#pragma once

#include "rank_map.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/step_timeline.h>

#include <optional>

namespace flopmeter {

/// Six digits are more than a picture shows.
void write_short(JsonWriter& json, double value);

void write_rank_map(JsonWriter& json, const RankMap::Picture& picture);

/// "step_timeline", null if there is none.
void write_step_timeline(JsonWriter& json, const std::optional<StepTimeline>& timeline);

}  // namespace flopmeter
