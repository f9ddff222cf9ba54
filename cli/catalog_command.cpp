// SPDX-License-Identifier: Apache-2.0
#include "catalog_command.h"

#include <flopmeter/core/text.h>
#include <flopmeter/report/style.h>

#include <algorithm>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string name;
  bool flagged = false;
  bool json = false;
};

std::string shown_text(const CatalogFact& fact) {
  if (const auto* count = std::get_if<WideInt>(&fact)) return grouped(*count);
  if (const auto* number = std::get_if<double>(&fact)) return shortest(*number);
  return printable(std::get<std::string>(fact));
}

bool is_text(const CatalogFact& fact) {
  return std::holds_alternative<std::string>(fact);
}

void write_fact(JsonWriter& json, const CatalogFact& fact) {
  const auto* text = std::get_if<std::string>(&fact);
  if (text != nullptr && text->empty()) {
    json.null();
  } else {
    std::visit([&](const auto& value) { json.value(value); }, fact);
  }
}

/// Columns of numbers are right-aligned.
std::string alignment(const std::vector<CatalogRow>& rows, std::size_t shown) {
  std::string columns = "l";
  for (std::size_t i = 0; i < shown; ++i) {
    const bool text = std::all_of(
        rows.begin(), rows.end(), [&](const auto& row) { return is_text(row.facts[i].second); });
    columns += text ? 'l' : 'r';
  }
  return columns;
}

Exit print_rows(const std::vector<CatalogRow>& rows) {
  if (rows.empty()) return 0;
  // The last fact, usually a source, is shown only for a single row and in JSON.
  const std::size_t shown =
      rows.size() == 1 ? rows[0].facts.size() : std::max<std::size_t>(rows[0].facts.size(), 2) - 1;
  if (rows.size() == 1) {
    Table table{"ll"};
    for (const auto& [key, value] : rows[0].facts) table.row({dim(key), shown_text(value)});
    return print(bold(printable(rows[0].name)) + "\n" + table.text());
  }
  Table table{alignment(rows, shown)};
  std::vector<std::string> head = {dim("name")};
  for (std::size_t i = 0; i < shown; ++i) head.push_back(dim(rows[0].facts[i].first));
  table.row(head);
  for (const CatalogRow& row : rows) {
    std::vector<std::string> cells = {bold(printable(row.name))};
    for (std::size_t i = 0; i < shown; ++i) cells.push_back(shown_text(row.facts[i].second));
    table.row(cells);
  }
  return print(table.text(""));
}

Exit run(const Options& options, const Catalog& catalog) {
  std::vector<CatalogRow> rows = catalog.rows();
  if (!options.name.empty()) {
    const Result<std::string> name =
        catalog.find != nullptr ? catalog.find(options.name) : Result<std::string>{options.name};
    if (!name) return refuse(name.error());
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == *name; });
    if (found == rows.end()) {
      std::vector<std::string_view> names;
      names.reserve(rows.size());
      for (const CatalogRow& row : rows) names.emplace_back(row.name);
      return refuse({ErrorCode::invalid_argument,
                     "unknown " + catalog.kind + " '" + printable(options.name) + "'" +
                         did_you_mean(options.name, names)});
    }
    rows = {*found};
  }
  if (!options.json) return print_rows(rows);
  return print_json([&](JsonWriter& json) {
    json.begin_array();
    for (const CatalogRow& row : rows) {
      json.begin_object().field("name", row.name);
      for (const auto& [key, value] : row.facts) write_fact(json.key(key), value);
      json.end_object();
    }
    json.end_array();
  });
}

}  // namespace

std::function<Exit()> catalog_command(Arguments& app, Catalog catalog) {
  auto options = std::make_shared<Options>();
  app.add_option("name", options->name, "show one " + catalog.kind);
  app.add_flag("--json", options->json, "print JSON");
  return [options, catalog = std::move(catalog)] { return run(*options, catalog); };
}

std::function<Exit()> catalog_command(Arguments& app,
                                      Catalog catalog,
                                      const std::string& flag,
                                      const std::string& flag_help,
                                      Catalog flagged) {
  auto options = std::make_shared<Options>();
  app.add_option("name", options->name, "show one " + catalog.kind + " or " + flagged.kind);
  app.add_flag(flag, options->flagged, flag_help);
  app.add_flag("--json", options->json, "print JSON");
  return [options, catalog = std::move(catalog), flagged = std::move(flagged)] {
    return run(*options, options->flagged ? flagged : catalog);
  };
}

}  // namespace flopmeter
