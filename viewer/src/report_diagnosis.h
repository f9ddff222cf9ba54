// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/diagnosis/evidence.h>

namespace flopmeter {

/// "waterfall", "findings" and what keeps them from being told.
void write_diagnosis(JsonWriter& json, const Evidence& evidence);

/// "survey": the operations of the latest surveyed step, null where there is none.
void write_survey(JsonWriter& json, const std::vector<SurveyResult>& surveys);

}  // namespace flopmeter
