// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace flopmeter {
namespace {

/// Bytes of the valid UTF-8 character at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

constexpr std::string_view replacement = "\xef\xbf\xbd";

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

std::string fixed(double value, int decimals) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 400> buffer{};
  const auto end = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), end.ptr};
}

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

std::string si(double value) {
  constexpr std::array<std::string_view, 9> prefixes = {
      "", " k", " M", " G", " T", " P", " E", " Z", " Y"};
  std::size_t prefix = 0;
  double scaled = value;
  while (std::abs(scaled) >= 999.5 && prefix + 1 < prefixes.size()) {
    scaled /= 1000;
    ++prefix;
  }
  const double size = std::abs(scaled);
  const int decimals = (prefix == 0 && scaled == std::floor(scaled)) ? 0
                       : size < 9.995                                ? 2
                       : size < 99.95                                ? 1
                                                                     : 0;
  return fixed(scaled, decimals) + std::string{prefixes[prefix]};
}

std::string grouped(WideInt value) {
  std::string digits = to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string percent(double ratio) {
  constexpr double smallest = 1e-3;  // with one decimal; below it, two digits
  const double size = std::abs(ratio);
  const bool small = size > 0 && size < smallest;
  const int decimals =
      small ? std::min(8, 1 - static_cast<int>(std::floor(std::log10(100 * size)))) : 1;
  return fixed(100 * ratio, decimals) + " %";
}

std::string duration(Seconds time) {
  const double s = time.value;
  constexpr double million_years = 3.15576e13;
  if (s < 0) return "-" + duration({-s});
  if (!(s < million_years)) return "more than a million years";
  if (s < 1e-6) return fixed(s * 1e9, 0) + " ns";
  if (s < 1e-3) return fixed(s * 1e6, 1) + " µs";
  if (s < 1) return fixed(s * 1e3, 1) + " ms";
  if (s < 120) return fixed(s, 2) + " s";
  const auto minutes = static_cast<std::int64_t>(s / 60);
  if (minutes < 120) return std::to_string(minutes) + " min";
  if (minutes < 2880)
    return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
  return fixed(s / 86400, 1) + " days";
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<long long> parse_int(std::string_view text) {
  long long value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out.append(length == 0 ? replacement : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return text.empty() ? 0 : 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;           // U+0080…U+009F
  if (byte(0) == 0xd8 && byte(1) == 0x9c) return 2;                             // U+061C
  const bool marks = byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f);   // U+200E, U+200F
  const bool embeds = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;    // U+202A…U+202E
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;  // U+2066…U+2069
  return byte(0) == 0xe2 && (marks || embeds || isolates) ? 3 : 0;
}

std::string printable(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for (std::string_view rest = valid; !rest.empty();) {
    const std::size_t length = control_length(rest);
    out.push_back(length == 0 ? rest.front() : ' ');
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::vector<std::string_view> nearest(std::string_view word,
                                      std::span<const std::string_view> known) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  const std::string wanted = lower(word.substr(0, 64));
  for (const auto candidate : known) {
    const std::string text = lower(candidate);
    const bool contains = wanted.size() >= 3 && text.find(wanted) != std::string::npos;
    // "mm" is near "aten::mm": users omit the namespace.
    const std::size_t scope = text.rfind("::");
    const std::string_view own = std::string_view{text}.substr(
        scope == std::string::npos || wanted.find("::") != std::string::npos ? 0 : scope + 2);
    const std::size_t distance =
        own == wanted ? 0 : (contains ? 1 : edit_distance(wanted, std::string{own}));
    if (distance <= std::max<std::size_t>(2, wanted.size() / 3))
      ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(
      ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> best;
  for (const auto& [distance, candidate] : ranked) {
    if (best.size() < 3) best.push_back(candidate);
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const auto best = nearest(word, known);
  if (best.empty()) return {};
  std::string text = "; did you mean ";
  for (std::size_t i = 0; i < best.size(); ++i) {
    text.append(i == 0 ? "" : i + 1 == best.size() ? " or " : ", ").append(best[i]);
  }
  return text + "?";
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  const auto matches_one = [&](char c, std::size_t& next) {
    if (pattern[p] == '?') return next = p + 1, true;
    const std::size_t close = pattern[p] == '[' ? pattern.find(']', p + 1) : std::string_view::npos;
    if (close == std::string_view::npos) return next = p + 1, pattern[p] == c;
    next = close + 1;
    for (std::size_t i = p + 1; i < close; ++i) {
      if (i + 2 < close && pattern[i + 1] == '-') {
        if (pattern[i] <= c && c <= pattern[i + 2]) return true;
        i += 2;
      } else if (pattern[i] == c) {
        return true;
      }
    }
    return false;
  };
  while (n < name.size()) {
    std::size_t next = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && matches_one(name[n], next)) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace flopmeter
