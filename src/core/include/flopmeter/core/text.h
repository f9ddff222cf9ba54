// SPDX-License-Identifier: Apache-2.0
//
// Numbers for display, and escaped text. Prefixes (tera, milli) and percent appear only here. The
// output is independent of the locale.
#pragma once

#include <flopmeter/core/units.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// "51.47" with two decimals; "n/a" is the caller's word for an empty optional.
std::string fixed(double value, int decimals);

/// Three or four significant digits and an SI prefix: "51.5 T", "8.03 G", "912".
std::string si(double value);

/// 1048576 as "1,048,576".
std::string grouped(WideInt value);

/// 0.413 as "41.3 %", 0.00012 as "0.012 %".
std::string percent(double ratio);

/// "35.2 ms", "1.24 s", "2 h 05 min".
std::string duration(Seconds time);

/// The shortest decimal text that reads back as the same double.
std::string shortest(double value);

/// A whole decimal number, nothing before or after it.
std::optional<double> parse_double(std::string_view text);
std::optional<long long> parse_int(std::string_view text);

/// Bytes of the character at the start of valid UTF-8 if it controls a terminal or the direction of
/// text, else 0.
std::size_t control_length(std::string_view text);

/// `text` without control characters or broken UTF-8: fit for a terminal or a log line.
std::string printable(std::string_view text);

/// Valid UTF-8: every offending byte becomes U+FFFD.
std::string valid_utf8(std::string_view text);

/// Up to three of `known` that are similar to `word`, nearest first; may be empty.
std::vector<std::string_view> nearest(std::string_view word,
                                      std::span<const std::string_view> known);

/// "; did you mean a, b?" for an error message, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

/// Whether `word` is one of `words`, which are separated by single spaces.
bool has_word(std::string_view words, std::string_view word);

/// Whether `name` matches a shell pattern of `*`, `?` and `[a-z]`.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace flopmeter
