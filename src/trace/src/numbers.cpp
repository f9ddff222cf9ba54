// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <flopmeter/core/wide_int.h>

#include <charconv>
#include <limits>

namespace flopmeter {
namespace {

constexpr WideInt most_digits = WideInt{1'000'000'000'000'000} * 1'000'000'000'000'000;

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

WideInt power_of_ten(int exponent) {
  WideInt power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

}  // namespace

std::optional<TraceNs> parse_microseconds(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  constexpr int most_decimals = 9;  // digits behind them cannot change the nanosecond
  WideInt digits = 0;
  int decimals = 0;
  bool any = false;
  bool point = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (point && decimals == most_decimals) continue;
    if (digits > most_digits) return std::nullopt;
    digits = digits * 10 + (c - '0');
    if (point) ++decimals;
  }
  const std::optional<int> exponent = parse_exponent(text.substr(i));
  if (!any || !exponent) return std::nullopt;
  const int shift = 3 + *exponent - decimals;
  if (shift < 0) {
    const WideInt unit = power_of_ten(-shift);
    digits = (digits + unit / 2) / unit;
  } else if (shift > 0) {
    if (digits > most_digits / power_of_ten(shift)) return std::nullopt;
    digits *= power_of_ten(shift);
  }
  if (digits > std::numeric_limits<TraceNs>::max()) return std::nullopt;
  return static_cast<TraceNs>(negative ? -digits : digits);
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
