// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <flopmeter/core/wide_int.h>

#include <charconv>
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
template <class Int>
struct Digits {
  Int value = 0;
  int decimals = 0;
  bool any = false;
  std::string_view rest;
};

/// Empty if the number has more digits than any time.
template <class Int>
std::optional<Digits<Int>> parse_digits(std::string_view text) {
  constexpr int most_decimals = 9;  // digits behind them cannot change the nanosecond
  constexpr int most_digits = 30;
  Digits<Int> digits;
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

template <class Int>
std::optional<TraceNs> nanoseconds(std::string_view text) {
  const auto digits = parse_digits<Int>(text);
  if (!digits || !digits->any) return std::nullopt;
  const std::optional<int> exponent = parse_exponent(digits->rest);
  if (!exponent) return std::nullopt;
  Int value = digits->value;
  int shift = 3 + *exponent - digits->decimals;
  if (shift < 0) {
    for (; shift < -1; ++shift) value /= 10;
    value = (value + 5) / 10;
  }
  constexpr Int most = std::numeric_limits<TraceNs>::max();
  for (; shift > 0 && value != 0; --shift) {
    if (value > most / 10) return std::nullopt;
    value *= 10;
  }
  return value > most ? std::nullopt : std::optional{static_cast<TraceNs>(value)};
}

}  // namespace

std::optional<TraceNs> parse_microseconds(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  // 18 digits fit 64 bits; wider integers take three times as long.
  const auto time =
      text.size() <= 18 ? nanoseconds<std::int64_t>(text) : nanoseconds<WideInt>(text);
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
