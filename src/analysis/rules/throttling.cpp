// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <array>
#include <utility>

namespace flopmeter {
namespace {

constexpr double least_share = 0.2;  // of the steps

/// NVML's bits of clocks event reasons that mean less than the device could do.
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 5> reasons = {{
    {0x04, "power cap"},
    {0x08, "hardware slowdown"},
    {0x20, "temperature (driver)"},
    {0x40, "temperature (hardware)"},
    {0x80, "power brake"},
}};

std::optional<Finding> find(const RuleContext& context) {
  std::array<int, reasons.size()> seen{};
  int known = 0;
  int throttled = 0;
  for (const StepRecord& record : context.evidence.steps) {
    if (record.tag != StepTag::train || !record.gpu_throttle_reasons) continue;
    ++known;
    bool any = false;
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      if ((*record.gpu_throttle_reasons & reasons[i].first) == 0) continue;
      ++seen[i];
      any = true;
    }
    if (any) ++throttled;
  }
  if (known == 0 || throttled < least_share * known) return std::nullopt;
  Finding finding;
  finding.rule = "throttling";
  finding.confidence = 0.8;
  finding.summary = "the device lowers its clock in " +
                    percent(static_cast<double>(throttled) / known) + " of the steps";
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (seen[i] == 0) continue;
    finding.evidence += (finding.evidence.empty() ? "" : ", ") + std::string{reasons[i].second} +
                        " in " + std::to_string(seen[i]) + " of " + std::to_string(known) +
                        " steps";
  }
  finding.recommendation =
      "power cap: raise it (nvidia-smi -pl) if the rack allows; temperature: check fans, inlet "
      "air, and adjacent devices; slowdown or brake: the power supply";
  return finding;
}

}  // namespace

extern constinit const Rule rule_throttling{
    .name = "throttling",
    .help = "the device lowers its clock because of power or temperature limits",
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) {
            record.gpu_throttle_reasons = record.step % 2 == 0 ? 0x24 : 0;
          });
        },
    .negative =
        [] {
          return example_window([](StepRecord& record) { record.gpu_throttle_reasons = 0x01; });
        }};

}  // namespace flopmeter
