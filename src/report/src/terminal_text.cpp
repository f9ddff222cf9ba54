// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/report/terminal_text.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>

namespace flopmeter {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

bool within(std::uint32_t point, Range range) {
  return point >= range.first && point <= range.last;
}

/// Marks that sit on the character before them, and wide East Asian characters and pictures: the
/// blocks of Unicode that names are likely to hold.
std::size_t width_of(std::uint32_t point) {
  if (within(point, {0x300, 0x36f}) || within(point, {0x200b, 0x200f}) ||
      within(point, {0xfe00, 0xfe0f}))
    return 0;
  constexpr std::array<Range, 7> wide = {{{0x1100, 0x115f},
                                          {0x2e80, 0xa4cf},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0x1f300, 0x3fffd}}};
  const bool is_wide =
      std::any_of(wide.begin(), wide.end(), [point](Range range) { return within(point, range); });
  return is_wide ? 2 : 1;
}

/// Bytes of the color code at the front; 0 if there is none.
std::size_t code_size(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  return std::min(text.find('m'), text.size() - 1) + 1;
}

/// The code point at the front of valid UTF-8, and its bytes.
std::pair<std::uint32_t, std::size_t> first_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  std::uint32_t point = size == 1 ? lead : lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < std::min(size, text.size()); ++i)
    point = point << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
  return {point, std::min(size, text.size())};
}

}  // namespace

std::size_t cells(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    if (const std::size_t code = code_size(text); code > 0) {
      text.remove_prefix(code);
      continue;
    }
    const auto [point, size] = first_point(text);
    width += width_of(point);
    text.remove_prefix(size);
  }
  return width;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', blanks), text.size());
    std::string_view word = text.substr(blanks, end - blanks);
    if (used > 0 && used + blanks + cells(word) > width) {
      lines.emplace_back();
      used = 0;
    } else {
      lines.back().append(blanks, ' ');
      used += blanks;
    }
    while (!word.empty()) {
      const std::size_t code = code_size(word);
      const auto [point, size] = first_point(word);
      const std::size_t taken = code > 0 ? 0 : width_of(point);
      if (used > 0 && used + taken > width) {
        lines.emplace_back();
        used = 0;
      }
      const std::size_t bytes = code > 0 ? code : size;
      lines.back().append(word.substr(0, bytes));
      used += taken;
      word.remove_prefix(bytes);
    }
    text.remove_prefix(end);
  }
  return lines;
}

std::string cut(std::string_view text, std::size_t width) {
  if (cells(text) <= width) return std::string{text};
  if (width == 0) return {};
  std::string kept;
  std::size_t used = 0;
  while (!text.empty()) {
    const auto [point, size] = first_point(text);
    used += width_of(point);
    if (used > width - 1) break;
    kept.append(text.substr(0, size));
    text.remove_prefix(size);
  }
  return kept + "…";
}

std::string padded(std::string_view text, std::size_t width) {
  std::string fitted = cut(text, width);
  fitted.append(width - cells(fitted), ' ');
  return fitted;
}

std::string padded_left(std::string_view text, std::size_t width) {
  const std::string fitted = cut(text, width);
  return std::string(width - cells(fitted), ' ') + fitted;
}

std::vector<std::string> percents(std::span<const double> parts,
                                  std::span<const std::size_t> exact) {
  const auto is_exact = [&](std::size_t i) {
    return std::find(exact.begin(), exact.end(), i) != exact.end();
  };
  std::vector<long> tenths;
  for (const double part : parts) tenths.push_back(std::lround(1000 * part));
  long missing = std::lround(1000 * std::accumulate(parts.begin(), parts.end(), 0.0)) -
                 std::accumulate(tenths.begin(), tenths.end(), 0L);
  // Each tenth goes to the part that it brings closest to its value.
  while (missing != 0 && !parts.empty()) {
    const long step = missing > 0 ? 1 : -1;
    const auto error = [&](std::size_t i) {
      const bool possible = tenths[i] + step >= 0;
      return std::tuple{!possible,
                        is_exact(i),
                        std::abs(static_cast<double>(tenths[i] + step) - 1000 * parts[i])};
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (error(i) < error(best)) best = i;
    }
    tenths[best] += step;
    missing -= step;
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool changed = tenths[i] != std::lround(1000 * parts[i]);
    texts.push_back(is_exact(i) && !changed ? percent(parts[i])
                                            : fixed(static_cast<double>(tenths[i]) / 10, 1) + " %");
  }
  return texts;
}

std::string block_bar(double share, std::size_t width) {
  constexpr std::array<std::string_view, 8> eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto parts = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8));
  std::string text;
  for (std::size_t i = 0; i < parts / 8; ++i) text.append("█");
  return text.append(eighths[parts % 8]);
}

}  // namespace flopmeter
