// SPDX-License-Identifier: Apache-2.0
//
// Text for a terminal: how many cells it takes, and how to fit it into them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Cells that UTF-8 text without control characters takes on screen; color codes take none.
std::size_t cells(std::string_view text);

/// Lines of at most `width` cells, broken between words, or within a word that is longer.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// The text, which holds no codes, if it fits, else its beginning and an ellipsis.
std::string cut(std::string_view text, std::size_t width);

/// Cut, and filled with spaces on the right or, for numbers, on the left.
std::string padded(std::string_view text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);

/// Parts of a whole as percent; as printed they have the same sum, "100.0 %" for all of them.  The
/// parts at `exact` are printed as percent() does, unless no other part can take what is missing.
std::vector<std::string> percents(std::span<const double> parts,
                                  std::span<const std::size_t> exact = {});

/// `share` (0 to 1) of a bar `width` cells wide.
std::string block_bar(double share, std::size_t width);

}  // namespace flopmeter
