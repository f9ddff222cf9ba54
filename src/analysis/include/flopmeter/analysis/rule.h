// SPDX-License-Identifier: Apache-2.0
//
// What a rule is.  To add one, add a file to analysis/rules.
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/analysis/waterfall.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flopmeter {

/// What every rule is asked about.
struct RuleContext {
  const Evidence& evidence;
  const Sums& sums;
  const OpTimes& ops;
  const Waterfall& waterfall;

  /// Part of the window's time that a cause took, 0–1.
  [[nodiscard]] double share(Cause cause) const {
    return static_cast<double>(waterfall.lost(cause)) / static_cast<double>(waterfall.total);
  }
  /// Nanoseconds of a cause within forward and backward together with its part of the work on
  /// padding: who ends the cause saves both.
  [[nodiscard]] std::int64_t with_padding(Cause cause) const {
    return static_cast<std::int64_t>(static_cast<double>(waterfall.lost(cause)) /
                                     sums.useful_share);
  }
  /// Seconds of a mean step that a cause took.
  [[nodiscard]] Seconds a_step(Cause cause) const { return a_step(waterfall.lost(cause)); }
  [[nodiscard]] Seconds a_step(std::int64_t nanoseconds) const {
    return {static_cast<double>(nanoseconds) / 1e9 / static_cast<double>(sums.steps)};
  }
  /// "35 ms of 120 ms a step (29.2 %)".
  [[nodiscard]] std::string a_step_text(std::int64_t nanoseconds) const;
  /// Tokens that go through the model at once, padding too; 0 where they are not known.
  [[nodiscard]] double tokens_at_once() const {
    return sums.micro_batches > 0 ? static_cast<double>(sums.tokens) / sums.useful_share /
                                      static_cast<double>(sums.micro_batches)
                                : 0;
  }
};

/// A finding about `nanoseconds` that a recommendation would save, with the MFU that it would bring.
Finding finding_of(const RuleContext& context,
                   std::string_view rule,
                   std::int64_t nanoseconds,
                   double confidence);

/// One file of analysis/rules: finds one cause.
struct Rule {
  std::string_view name;
  std::string_view help;  ///< one sentence: when it speaks
  std::optional<Finding> (*find)(const RuleContext& context) = nullptr;
  Evidence (*fires)() = nullptr;  ///< a window in which it speaks, run as a test
  Evidence (*negative)() = nullptr;  ///< and one, much like it, in which it does not
};

std::span<const Rule* const> rules();

}  // namespace flopmeter
