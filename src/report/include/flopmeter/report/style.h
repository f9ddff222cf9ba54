// SPDX-License-Identifier: Apache-2.0
//
// Style of terminal text: color on a terminal only, aligned columns, lines that fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Cells of the terminal on standard output; if there is none, COLUMNS or 80, and no rows.
struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 0;
};
TerminalSize terminal_size();

/// Color is used on a terminal, unless NO_COLOR is set.
bool colored();
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string accent(std::string_view text);
std::string warning(std::string_view text);
std::string better(std::string_view text);
std::string worse(std::string_view text);

/// Columns of the terminal, else COLUMNS; unlimited without either.
std::size_t text_width();

/// `first`, then the wrapped text; its further lines are indented to where it began.
std::string paragraph(std::string_view first, std::string_view text);

/// Text in columns: "r" is right-aligned, "l" left-aligned.  A left-aligned last column is wrapped
/// to the text width.
class Table {
 public:
  explicit Table(std::string_view alignment) : alignment_(alignment) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string text(std::string_view indent = "  ") const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace flopmeter
