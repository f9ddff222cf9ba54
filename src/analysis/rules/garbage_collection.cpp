// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.02;

constexpr Cause collecting{"garbage_collection", "Python's garbage collector"};

double collected(const Evidence& evidence) {
  return host_seconds_per_step(evidence, {&StepTotals::garbage_collection_seconds});
}

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(collecting);
  if (context.share(lost) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "garbage_collection", save(context, collecting, lost), 0.9);
  finding.summary = "Python's garbage collector stops the program: " + context.per_step_text(lost);
  finding.evidence = "full collections of the gc module took " +
                     duration({context.totals.garbage_collection_seconds /
                               static_cast<double>(context.totals.steps)}) +
                     " per step";
  finding.recommendation =
      "call gc.freeze() after the model is built; call gc.disable() and gc.collect() only every "
      "few hundred steps; keep fewer objects alive (lists of losses, cached samples)";
  return finding;
}

Evidence window(double seconds) {
  return example_window([=](StepRecord& record) {
    prolong(record, Phase::other, seconds);
    record.garbage_collection_seconds = Seconds{seconds};
  });
}

}  // namespace

extern constinit const Rule rule_garbage_collection{
    .name = "garbage_collection",
    .help = "Python's garbage collector takes 2 % of the time or more",
    .cause = &collecting,
    .find = find,
    .claim = collected,
    .within = &causes::loop,
    .fires = [] { return window(0.04); },
    .negative = [] { return window(0.001); }};

}  // namespace flopmeter
