// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.15;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::loop);
  if (inquiry.share(Cause::loop) < least_share) return std::nullopt;
  Finding finding = finding_of(inquiry, "loop", lost, 0.7);
  finding.summary = "the loop's own code takes " + inquiry.a_step_text(lost);
  finding.evidence = duration(inquiry.a_step(inquiry.sums.between)) + " between steps and " +
                     duration(inquiry.a_step(lost - inquiry.sums.between)) +
                     " inside them, in no phase and without an operator at work";
  finding.remedy =
      "log, print and read values (.item()) only every log interval; move work on metrics and "
      "files to another thread";
  return finding;
}

}  // namespace

extern const Rule loop_plugin;
constinit const Rule loop_plugin{
    .name = "loop",
    .help = "code of the loop outside all phases takes part of the step",
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) { record.between_seconds = Seconds{0.03}; });
        },
    .quiet =
        [] {
          return example_window(
              [](StepRecord& record) { record.between_seconds = Seconds{0.003}; });
        }};

}  // namespace flopmeter
