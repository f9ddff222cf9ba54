// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/report/style.h>
#include <flopmeter/report/terminal_text.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace flopmeter {
namespace {

constexpr std::size_t least_width = 20;  // minimum columns for wrapped text after other text

std::string painted(std::string_view text, std::string_view code) {
  if (!colored()) return std::string{text};
  return std::string{"\x1b["}.append(code).append("m").append(text).append("\x1b[0m");
}

}  // namespace

TerminalSize terminal_size() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return {size.ws_col, size.ws_row};
  const char* columns = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe)
  const auto given = columns == nullptr ? std::nullopt : parse_int(columns);
  return {given && *given > 0 && *given < 10'000 ? static_cast<std::size_t>(*given) : 80, 0};
}

bool colored() {
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
std::string better(std::string_view text) {
  return painted(text, "32");
}
std::string worse(std::string_view text) {
  return painted(text, "31");
}

std::size_t text_width() {
  const bool given = isatty(STDOUT_FILENO) != 0 || std::getenv("COLUMNS") != nullptr;
  return given ? terminal_size().columns : std::numeric_limits<std::size_t>::max();
}

std::string paragraph(std::string_view first, std::string_view text) {
  const std::size_t indent = cells(first);
  const std::size_t width = text_width();
  std::string out{first};
  std::string_view gap;
  for (const std::string& line :
       wrapped(text, width > indent + least_width ? width - indent : width)) {
    out.append(gap).append(gap.empty() ? 0 : indent, ' ').append(line);
    gap = "\n";
  }
  return out + "\n";
}

std::string Table::text(std::string_view indent) const {
  std::vector<std::size_t> widths(alignment_.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], cells(row[c]));
  }
  const std::size_t width = text_width();
  std::string out;
  for (const auto& row : rows_) {
    std::string line{indent};
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string gap(widths[c] - cells(row[c]), ' ');
      if (c > 0) line.append("  ");
      if (c + 1 == alignment_.size() && alignment_[c] == 'l' && cells(line + row[c]) > width) {
        // Below the other columns if they leave no room.
        const bool same_line = cells(line) + least_width < width;
        line = same_line ? paragraph(line, row[c])
                         : line + "\n" + paragraph(std::string{indent} + "  ", row[c]);
        line.pop_back();  // newline
      } else {
        line.append(alignment_[c] == 'r' ? gap + row[c] : row[c] + gap);
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).push_back('\n');
  }
  return out;
}

}  // namespace flopmeter
