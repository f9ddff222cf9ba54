// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace flopmeter {
namespace {

constexpr double least_fall = 0.15;
constexpr std::size_t least_steps = 150;

double quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

std::optional<Finding> find(const RuleContext& context) {
  std::vector<double> mfu;
  for (const StepRecord& record : context.evidence.steps) {
    if (record.tag == StepTag::train && record.mfu) mfu.push_back(*record.mfu);
  }
  if (mfu.size() < least_steps) return std::nullopt;
  const auto third = static_cast<std::ptrdiff_t>(mfu.size() / 3);
  const std::vector<double> first(mfu.begin(), mfu.begin() + third);
  const std::vector<double> middle(mfu.begin() + third, mfu.end() - third);
  const std::vector<double> last(mfu.end() - third, mfu.end());
  const double before = quantile(first, 0.5);
  const double after = quantile(last, 0.5);
  const double between = quantile(middle, 0.5);
  const bool apart = quantile(last, 0.75) < quantile(first, 0.25);
  if (!apart || !(before > between && between > after) || after > (1 - least_fall) * before)
    return std::nullopt;
  // All steps as fast as the first third.
  const double mean =
      std::accumulate(mfu.begin(), mfu.end(), 0.0) / static_cast<double>(mfu.size());
  const double saved =
      (1 - std::min(mean / before, 1.0)) * static_cast<double>(context.budget.total);
  Finding finding = finding_of(
      context, "mfu_drift", save(context, causes::unexplained, std::llround(saved)), 0.7);
  finding.summary = "MFU falls: " + percent(before) + " in the first third of " +
                    std::to_string(mfu.size()) + " steps, " + percent(between) +
                    " in the second, " + percent(after) + " in the last";
  finding.evidence = "medians of three thirds; three quarters of the last third lie below " +
                     percent(quantile(first, 0.25)) +
                     ", and three quarters of the first lie above it";
  finding.recommendation =
      "compare the phases of early and late steps (flopmeter compare): growing sequences, memory "
      "that leaks or fragments, clocks that fall with temperature, another job on the machine";
  return finding;
}

/// Three windows one after the other; `seconds` more in each step, by its number.
Evidence three_windows(double (*seconds)(int)) {
  Evidence window = example_window();
  const std::vector<StepRecord> steps = window.steps;
  window.steps.clear();
  for (int i = 0; i < 3 * static_cast<int>(steps.size()); ++i) {
    StepRecord record = steps[static_cast<std::size_t>(i) % steps.size()];
    prolong(record, Phase::forward, seconds(i));
    window.steps.push_back(record);
  }
  return window;
}

}  // namespace

extern constinit const Rule rule_mfu_drift{
    .name = "mfu_drift",
    .help = "MFU falls from the beginning of the window to its end",
    .find = find,
    .fires = [] { return three_windows([](int step) { return 0.0005 * step; }); },
    .negative = [] { return three_windows([](int step) { return step % 7 == 0 ? 0.1 : 0.01; }); }};

}  // namespace flopmeter
