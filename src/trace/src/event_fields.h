// SPDX-License-Identifier: Apache-2.0
//
// The fields of one event of a trace, as text.
#pragma once

#include "json_cursor.h"

#include <string_view>

namespace flopmeter {

/// Views into the trace; empty if the event does not state the field.  Text has no quotes.
struct EventFields {
  std::string_view phase, category, name, pid, tid, start, duration;
  std::string_view correlation, external_id, stream, device, bytes, sequence;
  std::string_view dims, types, concrete;
  std::string_view collective, in_elements, out_elements, dtype, group_size, group,
      collective_sequence;
};

/// Whether it has a start and a duration: phase "X".
inline bool is_complete_event(const EventFields& fields) {
  return fields.phase.size() == 1 && fields.phase.front() == 'X';
}

/// Start of the names of Python functions that are the forward of a module.
inline constexpr std::string_view module_prefix = "nn.Module: ";

/// Reads the object at the cursor, arguments included, as far as it is needed.  Of a repeated key
/// the last one counts.  False if the text is damaged.
bool read_event(JsonCursor& cursor, EventFields& fields);

/// Whether the text at `at` is a likely start of an event: an opening brace and a key that
/// events begin with.
bool is_event_start(std::string_view text, std::size_t at);

/// The first event that starts at or behind `from`; npos if there is none.
std::size_t find_event(std::string_view text, std::size_t from);

}  // namespace flopmeter
