// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/catalog/pricing.h>
#include <flopmeter/core/text.h>

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
                    {"parameters", grouped(counts.total)},
                    {"active", grouped(counts.active)},
                    {"source", (*config).text_or({"_source"}, "")}}});
  }
  return all;
}

}  // namespace

extern const Command models_plugin;
constinit const Command models_plugin{
    .name = "models",
    .help = "Well-known models by name",
    .order = 22,
    .set_up = [](CLI::App& app) { return catalog_command(app, "model", rows); }};

}  // namespace flopmeter
