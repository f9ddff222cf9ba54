// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/core/step_record.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Field& field : step_fields()) {
    const std::string name = field.group.empty()
                                 ? std::string{field.name}
                                 : std::string{field.group} + "." + std::string{field.name};
    all.push_back(
        {name, {{"unit", std::string{to_string(field.unit)}}, {"help", std::string{field.help}}}});
  }
  return all;
}

}  // namespace

extern constinit const Command command_fields{
    .name = "fields", .help = "Fields of a step record", .order = 25, .set_up = [](Arguments& app) {
      return catalog_command(app, {"field", rows});
    }};

}  // namespace flopmeter
