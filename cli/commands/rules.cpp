// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/analysis/rule.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Rule* rule : rules())
    all.push_back({std::string{rule->name}, {{"condition", std::string{rule->help}}}});
  return all;
}

}  // namespace

extern constinit const Command command_rules{.name = "rules",
                                             .help = "Diagnosis rules and their conditions",
                                             .order = 26,
                                             .set_up = [](Arguments& app) {
                                               return catalog_command(app, {"rule", rows});
                                             }};

}  // namespace flopmeter
