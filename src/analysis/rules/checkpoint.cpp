// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const auto saved = context.totals.other_tags.find(StepTag::checkpoint);
  if (saved == context.totals.other_tags.end()) return std::nullopt;
  const double seconds = saved->second.seconds;
  Finding finding = out_of_step_finding(context, "checkpoint", seconds, 0.95);
  if (*finding.share < least_share) return std::nullopt;
  const std::int64_t saves = saved->second.records;
  const double each = seconds / static_cast<double>(saves);
  const double step = context.totals.step_seconds()->value;
  const double every = std::ceil(100 * each / step);  // then a save costs one percent
  finding.summary = "saving checkpoints takes " + percent(*finding.share) + " of the run";
  finding.evidence = grouped(saves) + (saves == 1 ? " save of " : " saves of ") + duration({each}) +
                     " in " + grouped(context.totals.steps) + " steps of " + duration({step});
  finding.recommendation =
      "save every " + grouped(static_cast<WideInt>(every)) +
      " steps at most, or in the background (torch.distributed.checkpoint.async_save)";
  return finding;
}

StepRecord save(double seconds) {
  StepRecord record;
  record.tag = StepTag::checkpoint;
  record.step_seconds = {seconds};
  record.phases[static_cast<std::size_t>(Phase::checkpoint)] = Seconds{seconds};
  return record;
}

}  // namespace

extern constinit const Rule rule_checkpoint{
    .name = "checkpoint",
    .help = "saving checkpoints takes training time",
    .find = find,
    .fires =
        [] {
          return example_window({}, [](Evidence& window) { window.steps.push_back(save(2)); });
        },
    .negative =
        [] {
          return example_window({}, [](Evidence& window) { window.steps.push_back(save(0.05)); });
        }};

}  // namespace flopmeter
