// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/core/step_fields.h>
#include <flopmeter/sinks/sinks.h>

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

std::vector<CatalogRow> series_rows() {
  std::vector<CatalogRow> all;
  for (const OutputSeries& series : output_series()) {
    all.push_back(
        {std::string{series.name},
         {{"help", std::string{series.help}}, {"unit", std::string{to_string(series.unit)}}}});
  }
  return all;
}

}  // namespace

extern constinit const Command command_fields{
    .name = "fields", .help = "Fields of a step record", .order = 25, .set_up = [](Arguments& app) {
      return catalog_command(app,
                             {"field", rows},
                             "--series",
                             "list the Prometheus and TensorBoard series that are not fields",
                             {"series", series_rows});
    }};

}  // namespace flopmeter
