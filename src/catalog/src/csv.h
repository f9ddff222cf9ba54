// SPDX-License-Identifier: Apache-2.0
//
// Tables of the catalog in CSV: a header line, comments that begin with '#', fields in quotes if
// they contain commas.
#pragma once

#include <flopmeter/core/result.h>

#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

using CsvFields = std::vector<std::string>;

/// One line: fields separated by commas, quoted if they contain commas; "" is a quote.  Empty if a
/// quote is not closed.
std::optional<CsvFields> split_csv(std::string_view line);

/// Takes the next line off `text`, with its number in `line`; skips empty lines and comments.
/// Empty at the end.
std::optional<std::string_view> next_csv_line(std::string_view& text, std::size_t& line);

}  // namespace flopmeter
