// SPDX-License-Identifier: Apache-2.0
//
// WideInt: an exact integer of 128 bits.  One step of a 405B model on 16M tokens passes 2^64 FLOPs,
// and a double would round it; decimal text is the only form in which such a count leaves the
// program.
#pragma once

#include <iosfwd>
#include <optional>
#include <string_view>

namespace flopmeter {

__extension__ using WideInt = __int128;

/// Decimal digits, with a leading minus if negative.
std::string to_string(WideInt value);

/// The integer that `text` spells in decimal; empty if it is not one or does not fit 128 bits.
std::optional<WideInt> parse_wide_int(std::string_view text);

}  // namespace flopmeter
