// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/analysis/rule.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.waterfall.lost(Cause::checkpoint);
  if (context.share(Cause::checkpoint) < least_share) return std::nullopt;
  std::int64_t saves = 0;
  for (const StepRecord& record : context.evidence.steps) {
    const auto time = record.phases[static_cast<std::size_t>(Phase::checkpoint)];
    if (time && time->value > 0) ++saves;
  }
  saves = std::max<std::int64_t>(saves, 1);
  const double each = static_cast<double>(lost) / 1e9 / static_cast<double>(saves);
  const double step = static_cast<double>(context.waterfall.total - lost) / 1e9 /
                      static_cast<double>(context.sums.steps);
  const double every = std::ceil(100 * each / step);  // then a save costs one percent
  Finding finding = finding_of(context, "checkpoint", lost, 0.95);
  finding.summary =
      "saving checkpoints takes " + percent(context.share(Cause::checkpoint)) + " of the time";
  finding.evidence = std::to_string(saves) + " saves of " + duration({each}) + " in " +
                     std::to_string(context.sums.steps) + " steps of " + duration({step});
  finding.recommendation = "save every " + grouped(static_cast<WideInt>(every)) +
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
