// SPDX-License-Identifier: Apache-2.0
//
// run.json: RunMetadata as a file, written and read here.
#pragma once

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/run_metadata.h>

#include <string>
#include <string_view>

namespace flopmeter {

inline constexpr std::string_view run_schema = "flopmeter.run/2";

void write_json(JsonWriter& json, const ModelSource& source);

/// The text of run.json.
std::string to_json(const RunMetadata& run);

/// The inverse of to_json().  A missing value is empty.  Text of another schema is an error of code
/// `unsupported`; text that is not JSON is a parse error.
Result<RunMetadata> parse_run_metadata(std::string_view text);

/// Reads the file run.json in `directory`; `not_found` if there is none.
Result<RunMetadata> read_run_metadata(const std::string& directory);

/// Writes the file as a whole or not at all.  With `only_new` an existing file stays, so that the
/// first of several ranks wins.
Result<void> write_run_metadata(const std::string& directory,
                                const RunMetadata& run,
                                bool only_new);

}  // namespace flopmeter
