// SPDX-License-Identifier: Apache-2.0
//
// A diagnosis rule. To add one, add a file to src/analysis/rules.
#pragma once

#include <flopmeter/analysis/evidence.h>
#include <flopmeter/analysis/time_budget.h>
#include <flopmeter/core/finding.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Input of all rules.
struct RuleContext {
  const Evidence& evidence;
  const StepTotals& totals;
  const OpTimes& ops;
  const TimeBudget& budget;

  /// Part of the steps' time that a cause took, 0 to 1.
  [[nodiscard]] double share(const Cause& cause) const { return budget.share(cause); }
  [[nodiscard]] double share(std::int64_t nanoseconds) const {
    return budget.total > 0 ? static_cast<double>(nanoseconds) / static_cast<double>(budget.total)
                            : 0;
  }
  /// Nanoseconds of a cause within forward and backward with its part of the work on padding: a fix
  /// of the cause saves both.  A device that waits for launches does no work.
  [[nodiscard]] std::int64_t with_padding(const Cause& cause) const {
    if (cause == causes::launch_overhead && totals.device.steps > 0)
      return budget.nanoseconds(cause);
    return static_cast<std::int64_t>(static_cast<double>(budget.nanoseconds(cause)) /
                                     totals.token_share());
  }
  /// Nanoseconds of all steps from seconds of a mean step.
  [[nodiscard]] std::int64_t all_steps(double seconds) const;
  [[nodiscard]] Seconds per_step(std::int64_t nanoseconds) const {
    return {static_cast<double>(nanoseconds) / 1e9 / static_cast<double>(totals.steps)};
  }
  /// "35 ms of 120 ms per step (29.2 %)".
  [[nodiscard]] std::string per_step_text(std::int64_t nanoseconds) const;
  /// Tokens that go through the model at once, with padding; 0 if they are not known.
  [[nodiscard]] double tokens_at_once() const;
  /// Samples per micro-batch, at least 1.
  [[nodiscard]] std::int64_t samples_at_once() const;
};

/// Effect of a fix, in nanoseconds of all steps.
struct WhatIf {
  std::vector<BudgetLine> saved;
  double useful_factor = 1;    ///< useful time after the fix divided by useful time now
  std::optional<Dtype> dtype;  ///< after the fix; empty: as now
};

/// Saves time of a cause.  What the cause did not take is taken from all others except `useful`, in
/// proportion.
WhatIf save(const RuleContext& context, const Cause& cause, std::int64_t nanoseconds);

/// A finding with its what-if: time saved, speedup, and MFU after the fix.
Finding finding_of(const RuleContext& context,
                   std::string_view rule,
                   const WhatIf& what_if,
                   double confidence);

/// A finding about time outside the steps, which is not in the budget and does not change MFU.
Finding out_of_step_finding(const RuleContext& context,
                            std::string_view rule,
                            double seconds,
                            double confidence);

/// One file of analysis/rules.
struct Rule {
  std::string_view name;
  std::string_view help;         ///< one sentence: the condition
  const Cause* cause = nullptr;  ///< whose time it is about; null: of none or of several
  std::optional<Finding> (*find)(const RuleContext& context) = nullptr;
  /// Seconds of a mean step that the cause took, if only this rule knows; the budget takes them
  /// from `within` as far as possible, and the rest from all other causes in proportion.
  double (*claim)(const Evidence& evidence) = nullptr;
  const Cause* within = nullptr;
  Evidence (*fires)() = nullptr;     ///< example in which it fires, run as a test
  Evidence (*negative)() = nullptr;  ///< similar example in which it does not
};

std::span<const Rule* const> rules();

}  // namespace flopmeter
