// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

#include <algorithm>

namespace flopmeter {
namespace {

std::optional<Finding> find(const Inquiry& inquiry) {
  double highest = inquiry.sums.recorded_mfu;
  double hfu = 0;
  double seconds = 0;
  for (const StepRecord& record : inquiry.evidence.steps) {
    if (record.tag != StepTag::train || !record.hfu) continue;
    hfu += *record.hfu * record.step_seconds.value;
    seconds += record.step_seconds.value;
  }
  if (seconds > 0) highest = std::max(highest, hfu / seconds);
  if (!(highest > 1)) return std::nullopt;
  Finding finding;
  finding.rule = "mfu_above_100";
  finding.confidence = 1;
  finding.summary = "utilization is " + percent(highest) + ": no hardware does that";
  const auto peak =
      inquiry.sums.own_dtype ? inquiry.evidence.peaks.peak(*inquiry.sums.own_dtype) : std::nullopt;
  finding.evidence =
      (peak
           ? "peak " + si(peak->value) + "FLOP/s " + std::string{to_string(*inquiry.sums.own_dtype)}
           : "peaks by dtype") +
      " (" + inquiry.evidence.peaks.device + ", " + inquiry.evidence.peaks.source + "); FLOPs " +
      std::string{to_string(inquiry.evidence.steps.back().flops_source)};
  finding.remedy =
      "check the peak (--peak TFLOPS, or measure it: flopmeter peak): a dense figure for this "
      "dtype and all devices of the rank; and FLOPs that the caller gives";
  return finding;
}

}  // namespace

extern const Rule mfu_above_100_plugin;
constinit const Rule mfu_above_100_plugin{
    .name = "mfu_above_100",
    .help = "MFU or HFU is above 100 %, so the peak or the FLOPs are wrong",
    .find = find,
    .fires = [] { return example_window([](StepRecord& record) { *record.mfu *= 3; }); },
    .quiet = [] { return example_window([](StepRecord& record) { *record.mfu *= 1.5; }); }};

}  // namespace flopmeter
