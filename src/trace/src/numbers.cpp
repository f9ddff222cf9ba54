// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <flopmeter/core/wide_int.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

namespace flopmeter {
namespace {

/// The decimal exponent after "e"; empty if there is something else, or more than any time has.
std::optional<int> parse_exponent(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  constexpr int most = 20;
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return exponent > most || exponent < -most ? std::nullopt : std::optional{exponent};
}

/// Digits of a number without sign, and what follows them.
struct Digits {
  WideInt value = 0;
  int decimals = 0;
  bool any = false;
  std::string_view rest;
};

/// Empty if the number has more digits than any time.
std::optional<Digits> parse_digits(std::string_view text) {
  constexpr int most_decimals = 9;  // digits behind them cannot change the nanosecond
  constexpr int most_digits = 30;
  Digits digits;
  bool point = false;
  int count = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    digits.any = true;
    if (point && digits.decimals == most_decimals) continue;
    if (++count > most_digits) return std::nullopt;
    digits.value = digits.value * 10 + (c - '0');
    if (point) ++digits.decimals;
  }
  digits.rest = text.substr(i);
  return digits;
}

std::optional<TraceNs> nanoseconds(std::string_view text) {
  const auto digits = parse_digits(text);
  if (!digits || !digits->any) return std::nullopt;
  const std::optional<int> exponent = parse_exponent(digits->rest);
  if (!exponent) return std::nullopt;
  WideInt value = digits->value;
  int shift = 3 + *exponent - digits->decimals;
  if (shift < 0) {
    for (; shift < -1; ++shift) value /= 10;
    value = (value + 5) / 10;
  }
  constexpr WideInt most = std::numeric_limits<TraceNs>::max();
  for (; shift > 0 && value != 0; --shift) {
    if (value > most / 10) return std::nullopt;
    value *= 10;
  }
  return value > most ? std::nullopt : std::optional{static_cast<TraceNs>(value)};
}

/// The usual form: digits and at most three decimals.  Empty for any other.
std::optional<TraceNs> plain_nanoseconds(std::string_view text) {
  constexpr std::size_t most_whole = 16;  // with three decimals: 19 digits, which fit 64 bits
  if (text.size() > most_whole + 4) return std::nullopt;
  std::uint64_t value = 0;
  std::size_t whole = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = static_cast<unsigned>(text[i] - '0');
    if (digit <= 9) {
      value = value * 10 + digit;
    } else if (text[i] == '.' && whole == text.size()) {
      whole = i;
    } else {
      return std::nullopt;
    }
  }
  const std::size_t decimals = text.size() - std::min(whole + 1, text.size());
  if (whole == 0 || whole > most_whole || decimals > 3) return std::nullopt;
  for (std::size_t i = decimals; i < 3; ++i) value *= 10;
  constexpr std::uint64_t most = std::numeric_limits<TraceNs>::max();
  return value <= most ? std::optional{static_cast<TraceNs>(value)} : std::nullopt;
}

}  // namespace

std::optional<TraceNs> parse_microseconds(std::string_view text) {
  if (const auto time = plain_nanoseconds(text)) return time;
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  const auto time = nanoseconds(text);
  return time && negative ? std::optional{-*time} : time;
}

std::int64_t parse_id(std::string_view text) {
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{}) return no_id;
  if (end == last) return value;
  const std::string_view rest{end, static_cast<std::size_t>(last - end)};
  const bool zero_fraction =
      rest.front() == '.' && rest.find_first_not_of('0', 1) == std::string_view::npos;
  return zero_fraction ? value : no_id;
}

}  // namespace flopmeter
