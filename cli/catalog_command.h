// SPDX-License-Identifier: Apache-2.0
//
// Commands that list a catalog: all rows, or the one that is named, as a table or as JSON.
#pragma once

#include "command.h"

#include <utility>
#include <variant>
#include <vector>

namespace flopmeter {

/// What is said of an entry: text, nothing where it is empty, or a number.
using CatalogFact = std::variant<std::string, WideInt, double>;

/// One entry: its name, and what is said of it, in order.
struct CatalogRow {
  std::string name;
  std::vector<std::pair<std::string, CatalogFact>> facts;
};

/// `kind` is what one row is called in messages; `find`, where given, takes what the user typed for
/// the name of a row.
std::function<Exit()> catalog_command(CLI::App& app,
                                      std::string kind,
                                      std::vector<CatalogRow> (*rows)(),
                                      Result<std::string> (*find)(std::string_view) = nullptr);

}  // namespace flopmeter
