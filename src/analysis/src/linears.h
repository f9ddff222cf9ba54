// SPDX-License-Identifier: Apache-2.0
//
// Predicted time of the linear layers of a run with another shape or dtype, from the profiles and
// from measurements on this machine.
#pragma once

#include <flopmeter/analysis/rule.h>

namespace flopmeter {

/// Seconds per step that they save with `times` as many tokens per pass, for the same number of
/// tokens: fewer launches and weight reads, and the measured rate for more rows. 0 if the memory
/// bandwidth is unknown.
double saved_by_rows(const RuleContext& context, double times);

/// Seconds per step that they save in another dtype; empty if no rates were measured.
std::optional<double> saved_in(const RuleContext& context, Dtype dtype);

}  // namespace flopmeter
