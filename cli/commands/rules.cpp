// SPDX-License-Identifier: Apache-2.0
#include "../catalog_command.h"

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/analysis/rule.h>
#include <flopmeter/trace/trace_report.h>

namespace flopmeter {
namespace {

/// Recommendation of the rule in its own example.
std::string example_recommendation(const Rule& rule) {
  const auto diagnosis = diagnose(rule.fires());
  if (!diagnosis) return "";
  for (const Finding& finding : (*diagnosis).findings) {
    if (finding.rule == rule.name) return finding.recommendation;
  }
  return "";
}

std::vector<CatalogRow> rows() {
  std::vector<CatalogRow> all;
  for (const Rule* rule : rules())
    all.push_back({std::string{rule->name},
                   {{"condition", std::string{rule->help}},
                    {"recommendation", example_recommendation(*rule)}}});
  for (const TraceRule& rule : trace_rules())
    all.push_back({std::string{rule.name},
                   {{"condition", "in a trace: " + std::string{rule.help}},
                    {"recommendation", std::string{rule.recommendation}}}});
  return all;
}

}  // namespace

extern constinit const Command command_rules{
    .name = "rules",
    .help = "Diagnosis rules, their conditions, and recommendations",
    .order = 26,
    .set_up = [](Arguments& app) {
      return catalog_command(app, {"rule", rows});
    }};

}  // namespace flopmeter
