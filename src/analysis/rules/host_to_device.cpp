// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::host_to_device);
  if (context.share(causes::host_to_device) < least_share) return std::nullopt;
  Finding finding =
      finding_of(context, "host_to_device", save(context, causes::host_to_device, lost), 0.6);
  finding.summary = "copies between host and device delay the step: " + context.per_step_text(lost);
  finding.evidence = context.totals.device.steps > 0
                         ? "device marks around copies that did not overlap other work"
                         : "aten::copy_ across devices took " + duration({context.ops.copies}) +
                               " of a profiled step on the host";
  finding.recommendation =
      "DataLoader(pin_memory=True) and batch.to(device, non_blocking=True); read values back "
      "(.item(), .cpu(), print) only every log interval";
  return finding;
}

void copies_take(Evidence& window, double seconds) {
  for (OpProfile& profile : window.profiles) {
    profile.on_device = true;
    profile.rows.push_back({.name = "aten::copy_",
                            .kind = OpKind::memory,
                            .calls = 4,
                            .self = {seconds},
                            .phase = Phase::forward,
                            .across_devices = true});
  }
}

}  // namespace

extern constinit const Rule rule_host_to_device{
    .name = "host_to_device",
    .help = "copies between host and device delay the step",
    .cause = &causes::host_to_device,
    .find = find,
    .fires = [] { return example_window({}, [](Evidence& window) { copies_take(window, 0.02); }); },
    .negative =
        [] { return example_window({}, [](Evidence& window) { copies_take(window, 0.001); }); }};

}  // namespace flopmeter
