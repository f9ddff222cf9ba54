// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::host_to_device);
  if (inquiry.share(Cause::host_to_device) < least_share) return std::nullopt;
  Finding finding = finding_of(inquiry, "host_to_device", lost, 0.6);
  finding.summary =
      "copies between host and device keep the host waiting: " + inquiry.a_step_text(lost);
  finding.evidence = "aten::copy_ across devices took " + duration({inquiry.ops.copies}) +
                     " of a surveyed step on the host";
  finding.remedy =
      "DataLoader(pin_memory=True) and batch.to(device, non_blocking=True); read values back "
      "(.item(), .cpu(), print) only every log interval";
  return finding;
}

void copies_take(Evidence& window, double seconds) {
  for (SurveyResult& survey : window.surveys) {
    survey.on_device = true;
    survey.rows.push_back({.name = "aten::copy_",
                           .kind = OpKind::memory,
                           .calls = 4,
                           .self = {seconds},
                           .phase = Phase::forward,
                           .across_devices = true});
  }
}

}  // namespace

extern const Rule host_to_device_plugin;
constinit const Rule host_to_device_plugin{
    .name = "host_to_device",
    .help = "copies between host and device hold the work up",
    .find = find,
    .fires = [] { return example_window({}, [](Evidence& window) { copies_take(window, 0.02); }); },
    .quiet =
        [] { return example_window({}, [](Evidence& window) { copies_take(window, 0.001); }); }};

}  // namespace flopmeter
