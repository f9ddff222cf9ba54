// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/catalog/cost_model.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const EmbeddedFile& file : known_models()) {
    const auto config = Config::parse(file.text, file.name);
    const auto model = find_model(file.name);
    if (!config || !model) continue;  // the tests see to it that there is none such
    const ParameterCounts counts = count_parameters(*model);
    all.push_back({std::string{file.name},
                   {{"family", (*model).family},
                    {"parameters", counts.total},
                    {"active", counts.active},
                    {"source", (*config).text_or({"_source"}, "")}}});
  }
  return all;
}

/// By any name that `estimate` takes.
Result<std::string> find(std::string_view name) {
  auto model = find_model(name);
  if (!model) return model.error();
  return std::move((*model).name);
}

}  // namespace

extern constinit const Command command_models{
    .name = "models",
    .help = "Well-known models by name",
    .order = 22,
    .set_up = [](CLI::App& app) { return catalog_command(app, "model", rows, find); }};

}  // namespace flopmeter
