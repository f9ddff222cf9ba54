// SPDX-License-Identifier: Apache-2.0
//
// The curves of the page's data.
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/report/timeline.h>

namespace flopmeter {

/// Six digits are more than a picture shows.
void write_short(JsonWriter& json, double value);

/// "timeline": mean, extremes, and quantiles of each bucket of steps.
void write_timeline(JsonWriter& json, const Timeline& timeline);

}  // namespace flopmeter
