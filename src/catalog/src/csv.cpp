// SPDX-License-Identifier: Apache-2.0
#include "csv.h"

#include <algorithm>

namespace flopmeter {

std::optional<CsvFields> split_csv(std::string_view line) {
  CsvFields fields(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && inside && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      inside = !inside;
    } else if (c == ',' && !inside) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (inside) return std::nullopt;
  return fields;
}

std::optional<std::string_view> next_csv_line(std::string_view& text, std::size_t& line) {
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (!row.empty() && row.front() != '#') return row;
  }
  return std::nullopt;
}

}  // namespace flopmeter
