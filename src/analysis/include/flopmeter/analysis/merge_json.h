// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/merge.h>
#include <flopmeter/core/json_writer.h>

namespace flopmeter {

/// The object that `flopmeter ranks --json` prints.
void write_json(JsonWriter& json, const MergedRun& merged);

}  // namespace flopmeter
