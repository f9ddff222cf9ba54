// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const EmbeddedFile& file : known_models()) {
    const auto config = Config::parse(file.text, file.name);
    const auto model = find_model(file.name);
    if (!config || !model) continue;  // a test checks that all are valid
    const ParameterCounts counts = count_parameters(*model);
    all.push_back({std::string{file.name},
                   {{"family", (*model).family},
                    {"parameters", counts.total},
                    {"active", counts.active},
                    {"source", (*config).text_or({"_source"}, "")}}});
  }
  return all;
}

std::vector<CatalogRow> family_rows() {
  std::vector<CatalogRow> all;
  for (const ModelFamily* family : model_families()) {
    all.push_back({std::string{family->name},
                   {{"models", std::string{family->help}}, {"types", std::string{family->types}}}});
  }
  return all;
}

/// Accepts every name that `estimate` accepts.
Result<std::string> find(std::string_view name) {
  auto model = find_model(name);
  if (!model) return model.error();
  return std::move((*model).name);
}

std::function<Exit()> set_up(Arguments& app) {
  return catalog_command(app,
                         {"model", rows, find},
                         "--families",
                         "list the model families and the `model_type` values they read",
                         {"family", family_rows});
}

}  // namespace

extern constinit const Command command_models{
    .name = "models", .help = "Known models and model families", .order = 22, .set_up = set_up};

}  // namespace flopmeter
