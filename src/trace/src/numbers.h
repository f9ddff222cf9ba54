// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a trace, parsed from their text.  Times have up to 19 digits, more than a double
// holds.
#pragma once

#include <flopmeter/trace/trace.h>

#include <optional>
#include <string_view>

namespace flopmeter {

/// Microseconds in decimal notation, as exact nanoseconds; digits beyond them are rounded.  Empty
/// if the text is not a number or exceeds 64 bits.
std::optional<TraceNs> parse_microseconds(std::string_view text);

/// An integer; a fraction of zero (`7.0`) is accepted.  `no_id` if the text is none or exceeds 63
/// bits.
std::int64_t parse_id(std::string_view text);

}  // namespace flopmeter
