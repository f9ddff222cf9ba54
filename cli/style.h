// SPDX-License-Identifier: Apache-2.0
//
// How the program's text looks: color on a terminal only, columns that line up, lines that fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Colour is used on a terminal, unless NO_COLOR is set.
bool colored();
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string accent(std::string_view text);
std::string warning(std::string_view text);
std::string better(std::string_view text);
std::string worse(std::string_view text);

/// Columns for text: the terminal's, else COLUMNS; without either a line may be of any length.
std::size_t text_width();

/// `first`, then the text broken between words, its further lines below where it began.
std::string paragraph(std::string_view first, std::string_view text);

/// Rows of text set in columns, "r" aligned to the right and "l" to the left.  A last column of the
/// latter kind is broken between words where the row is wider than text may be.
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
