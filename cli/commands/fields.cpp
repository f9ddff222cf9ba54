// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/core/step_fields.h>

namespace flopmeter {
namespace {

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Field& field : step_fields()) {
    all.push_back({full_name(field),
                   {{"unit", std::string{to_string(field.unit)}},
                    {"kind", std::string{to_string(field.kind)}},
                    {"help", std::string{field.help}},
                    {"prometheus", std::string{field.prometheus}},
                    {"tensorboard", std::string{field.tensorboard}}}});
  }
  return all;
}

}  // namespace

extern constinit const Command command_fields{
    .name = "fields", .help = "Fields of a step record", .order = 25, .set_up = [](Arguments& app) {
      return catalog_command(app, {"field", rows});
    }};

}  // namespace flopmeter
