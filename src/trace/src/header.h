// SPDX-License-Identifier: Apache-2.0
//
// The keys of a trace other than its events: devices, ranks, and the origin of its times.
#pragma once

#include "json_cursor.h"

#include <flopmeter/trace/trace.h>

#include <string>
#include <string_view>

namespace flopmeter {

/// Reads the value of the key `name`.  False if the text is damaged.
bool read_header(std::string_view name, JsonCursor& cursor, Trace& trace);

/// Completes "the file is …" for a file without events.
std::string without_events(std::string_view text, const Trace& trace);

}  // namespace flopmeter
