// SPDX-License-Identifier: Apache-2.0
//
// How the program's text looks: colour on a terminal only, columns that line up, bars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Colour is used on a terminal, unless NO_COLOR is set.
bool coloured();
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string accent(std::string_view text);
std::string warning(std::string_view text);

/// `share` (0 to 1) of a bar `width` cells wide.
std::string bar(double share, int width);

/// Cells a text takes on screen: characters, not bytes; colour codes take none.
std::size_t display_width(std::string_view text);

/// Rows of text set in columns; the ones in `right` ("r" a column, "l" else) are aligned to the
/// right.
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
