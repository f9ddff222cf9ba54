// SPDX-License-Identifier: Apache-2.0
//
// What the linears of a run would take with another shape or number format, by the profiles and by
// what was measured on this machine.
#pragma once

#include <flopmeter/analysis/rule.h>

namespace flopmeter {

/// Seconds a step that they save when `times` as many tokens go through the model at once, for as
/// many tokens as now: their products are started and their weights moved less often, and are as
/// fast as was measured for more rows.  0 where it is not known how fast memory is.
double saved_by_rows(const RuleContext& context, double times);

/// Seconds a step that they save in another format; empty where no rates were measured.
std::optional<double> saved_in(const RuleContext& context, Dtype dtype);

}  // namespace flopmeter
