// SPDX-License-Identifier: Apache-2.0
#include "style.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace flopmeter {
namespace {

std::string painted(std::string_view text, std::string_view code) {
  if (!coloured()) return std::string{text};
  return std::string{"\x1b["}.append(code).append("m").append(text).append("\x1b[0m");
}

}  // namespace

bool coloured() {
  static const bool on = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return on;
}

std::string bold(std::string_view text) {
  return painted(text, "1");
}
std::string dim(std::string_view text) {
  return painted(text, "2");
}
std::string accent(std::string_view text) {
  return painted(text, "36");
}
std::string warning(std::string_view text) {
  return painted(text, "33");
}

std::string bar(double share, int width) {
  constexpr auto eighths = std::to_array<std::string_view>({"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"});
  const auto cells = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
  std::string text;
  for (int i = 0; i < cells / 8; ++i) text.append("█");
  return text.append(eighths[static_cast<std::size_t>(cells % 8)]);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    if (!escape && (static_cast<unsigned char>(c) & 0xc0U) != 0x80) ++width;
    if (escape && c == 'm') escape = false;
  }
  return width;
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths(alignment_.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line{indent};
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string gap(widths[c] - display_width(row[c]), ' ');
      if (c > 0) line.append("  ");
      line.append(alignment_[c] == 'r' ? gap + row[c] : row[c] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).push_back('\n');
  }
  return out;
}

}  // namespace flopmeter
