// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/analysis/evidence.h>

namespace flopmeter {

/// "waterfall", "findings" and what keeps them from being told.
void write_diagnosis(JsonWriter& json, const Evidence& evidence);

/// "profile": the operations of the latest profiled step, null where there is none.
void write_op_profile(JsonWriter& json, const std::vector<OpProfile>& profiles);

}  // namespace flopmeter
