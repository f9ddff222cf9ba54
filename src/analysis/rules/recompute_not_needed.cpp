// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;
constexpr double memory_is_short = 0.7;  // of the device's memory, without what would be kept

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.with_padding(causes::recompute);
  if (context.share(causes::recompute) < least_share) return std::nullopt;
  std::optional<std::int64_t> used;
  for (const StepRecord& record : context.evidence.steps) {
    const auto peak = record.memory_device_peak_bytes ? record.memory_device_peak_bytes
                                                      : record.memory_rss_peak_bytes;
    if (peak) used = std::max(used.value_or(0), *peak);
  }
  const auto capacity = context.evidence.memory_capacity_bytes;
  const bool known = used && capacity && *capacity > 0;
  const double filled = known ? static_cast<double>(*used) / static_cast<double>(*capacity) : 0;
  if (known && filled > memory_is_short) return std::nullopt;
  Finding finding = finding_of(
      context, "recompute_not_needed", save(context, causes::recompute, lost), known ? 0.9 : 0.6);
  finding.summary = "backward recomputes activations: " + context.per_step_text(lost);
  finding.evidence = percent(static_cast<double>(context.totals.recompute_flops) /
                             static_cast<double>(context.totals.hardware_flops)) +
                     " of the executed FLOPs are recompute; " +
                     (known  ? "memory is " + percent(filled) + " full at its peak"
                      : used ? "memory peaks at " + si(static_cast<double>(*used)) +
                                   "B, and how much there is was not recorded"
                             : "memory use was not recorded");
  finding.recommendation =
      "switch activation checkpointing off, or checkpoint only every second layer, as far as "
      "memory allows (model.gradient_checkpointing_disable(), --recompute-granularity selective)";
  return finding;
}

Evidence recomputing(std::int64_t used) {
  Evidence window = example_window([&](StepRecord& record) {
    record.recompute_flops = Flops{16'000'000'000};
    record.hardware_flops = Flops{66'000'000'000};
    prolong(record, Phase::backward, 0.03);
    record.memory_device_peak_bytes = used;
  });
  window.memory_capacity_bytes = std::int64_t{80} << 30U;
  return window;
}

}  // namespace

extern constinit const Rule rule_recompute_not_needed{
    .name = "recompute_not_needed",
    .help = "activations are recomputed although there is enough memory to keep them",
    .cause = &causes::recompute,
    .find = find,
    .fires = [] { return recomputing(std::int64_t{20} << 30U); },
    .negative = [] { return recomputing(std::int64_t{75} << 30U); }};

}  // namespace flopmeter
