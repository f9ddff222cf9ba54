// SPDX-License-Identifier: Apache-2.0
//
// Commands that list a catalog: all rows or one, as a table or JSON.
#pragma once

#include "command.h"

#include <utility>
#include <variant>
#include <vector>

namespace flopmeter {

/// A value of an entry: text (empty: none) or a number.
using CatalogFact = std::variant<std::string, WideInt, double>;

/// One entry: its name and its values, in order.
struct CatalogRow {
  std::string name;
  std::vector<std::pair<std::string, CatalogFact>> facts;
};

/// `kind` names a row in messages; `find`, if set, maps what the user typed to the name of a row.
struct Catalog {
  std::string kind;
  std::vector<CatalogRow> (*rows)();
  Result<std::string> (*find)(std::string_view) = nullptr;
};

std::function<Exit()> catalog_command(Arguments& app, Catalog catalog);

/// With a second catalog, which `flag` selects.
std::function<Exit()> catalog_command(Arguments& app,
                                      Catalog catalog,
                                      const std::string& flag,
                                      const std::string& flag_help,
                                      Catalog flagged);

}  // namespace flopmeter
