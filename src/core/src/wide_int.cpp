// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/wide_int.h>

#include <algorithm>
#include <string>

namespace flopmeter {

std::string to_string(WideInt value) {
  std::string digits;
  // Works on the negative side, which also holds the smallest value.
  WideInt rest = value > 0 ? -value : value;
  do {
    digits.push_back(static_cast<char>('0' - static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest != 0);
  if (value < 0) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::optional<WideInt> parse_wide_int(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  WideInt value = 0;  // held negative, for the same reason
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, 10, &value)) return std::nullopt;
    if (__builtin_sub_overflow(value, c - '0', &value)) return std::nullopt;
  }
  if (negative) return value;
  WideInt positive = 0;
  if (__builtin_sub_overflow(positive, value, &positive)) return std::nullopt;
  return positive;
}

}  // namespace flopmeter
