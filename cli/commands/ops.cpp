// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/catalog/op_rule.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const OpFamily* family : op_families()) {
    for (const OpRule& rule : family->rules) {
      all.push_back({std::string{rule.name},
                     {{"family", std::string{family->name}},
                      {"cost", std::string{family->help}},
                      {"source", std::string{family->source}}}});
    }
  }
  return all;
}

/// An operator without its namespace is one of torch's own.
Result<std::string> find(std::string_view name) {
  return name.find("::") == std::string_view::npos ? "aten::" + std::string{name}
                                                   : std::string{name};
}

}  // namespace

extern constinit const Command command_ops{.name = "ops",
                                           .help = "Supported operators and their FLOP formulas",
                                           .order = 23,
                                           .set_up = [](Arguments& app) {
                                             return catalog_command(app, {"operator", rows, find});
                                           }};

}  // namespace flopmeter
