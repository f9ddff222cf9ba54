// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/step_record.h>

#include <string>

namespace flopmeter {

/// Version of the record's form; a name once released never gets a new meaning.
inline constexpr int record_schema = 1;

/// The record as an object with all fields of step_fields(): unknown values are null, groups are
/// objects that hold only what is known.  Ends the object unless `more` fields follow.
void write_record(JsonWriter& json, const StepRecord& record, bool more = false);

}  // namespace flopmeter
