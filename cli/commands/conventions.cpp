// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/convention.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Convention* c : conventions()) {
    all.push_back({std::string{c->name},
                   {{"counts", std::string{c->help}}, {"source", std::string{c->source}}}});
  }
  return all;
}

}  // namespace

extern constinit const Command command_conventions{
    .name = "conventions",
    .help = "FLOP-counting conventions",
    .order = 24,
    .set_up = [](Arguments& app) {
      return catalog_command(app, {"convention", rows});
    }};

}  // namespace flopmeter
