// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::synchronization);
  if (context.share(causes::synchronization) < least_share) return std::nullopt;
  Finding finding =
      finding_of(context, "synchronization", save(context, causes::synchronization, lost), 0.7);
  finding.summary =
      "the device runs dry after the host waited for it: " + context.per_step_text(lost);
  const auto& device = context.totals.device;
  if (device.steps > 0) {  // a trace lists its calls itself
    finding.evidence =
        fixed(static_cast<double>(device.synchronizations) / static_cast<double>(device.steps), 1) +
        " waits per step (.item(), .cpu(), blocking copies, synchronize())";
  }
  finding.recommendation =
      "read values back (.item(), .cpu(), print) only every log interval, or one step late from a "
      "non-blocking copy";
  return finding;
}

Evidence example(double idle) {
  return example_window([=](StepRecord& record) {
    record.time_source = TimeSource::device;
    record.device_idle_min_seconds = Seconds{idle};
    record.device_idle_max_seconds = Seconds{idle};
    record.device_idle_synchronization = Seconds{idle};
    record.synchronizations = 1;
  });
}

}  // namespace

extern constinit const Rule rule_synchronization{
    .name = "synchronization",
    .help = "the host waits for the device, which then runs out of work",
    .cause = &causes::synchronization,
    .find = find,
    .fires = [] { return example(0.02); },
    .negative = [] { return example(0.001); }};

}  // namespace flopmeter
