// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

std::optional<Finding> find(const RuleContext& context) {
  const double mfu = context.totals.mfu().value_or(0);
  const double hfu = context.totals.hfu().value_or(0);
  if (!(mfu > 1) && !(hfu > 1)) return std::nullopt;
  Finding finding;
  finding.rule = "mfu_above_100";
  finding.confidence = 1;
  finding.summary = (mfu > 1 ? "MFU is " + percent(mfu) : "HFU is " + percent(hfu)) +
                    ", more than the peak allows";
  const auto dtype = main_dtype(context.totals);
  const auto peak = dtype ? context.evidence.peaks.peak(*dtype) : std::nullopt;
  finding.evidence =
      (peak ? "peak " + si(peak->value) + "FLOP/s " + std::string{to_string(*dtype)}
            : "peaks by dtype") +
      " (" + context.evidence.peaks.device + ", " + context.evidence.peaks.source + ")" +
      (context.evidence.steps.empty()
           ? ""
           : "; FLOPs: " + std::string{to_string(context.evidence.steps.back().flops_source)});
  finding.recommendation =
      "check the peak (--peak TFLOPS, or measure it: flopmeter peak): a dense figure for this "
      "dtype and all devices of the rank; also check the FLOPs that the loop passes";
  return finding;
}

}  // namespace

extern constinit const Rule rule_mfu_above_100{
    .name = "mfu_above_100",
    .help = "MFU or HFU is above 100 %, so the peak or the FLOPs are wrong",
    .find = find,
    .fires = [] { return example_window([](StepRecord& record) { *record.mfu *= 3; }); },
    .negative = [] { return example_window([](StepRecord& record) { *record.mfu *= 1.5; }); }};

}  // namespace flopmeter
