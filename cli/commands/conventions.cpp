// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Convention* c : conventions()) {
    all.push_back({std::string{c->name},
                   {{"help", std::string{c->help}}, {"source", std::string{c->source}}}});
  }
  return all;
}

}  // namespace

extern constinit const Command command_conventions{
    .name = "conventions",
    .help = "What counts as model FLOPs: ours and others'",
    .order = 24,
    .set_up = [](CLI::App& app) { return catalog_command(app, "convention", rows); }};

}  // namespace flopmeter
