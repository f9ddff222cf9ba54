// SPDX-License-Identifier: Apache-2.0
//
// What the linears of a run would take with another shape or number format, by the rates that
// products of such shapes were measured to reach on this machine.
#pragma once

#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {

/// Seconds a step that they save when `times` as many tokens go through the model at once, for as
/// many tokens as now; 0 where no rates were measured.
double saved_by_rows(const Inquiry& inquiry, double times);

/// Seconds a step that they save in another format; empty where no rates were measured.
std::optional<double> saved_in(const Inquiry& inquiry, Dtype dtype);

}  // namespace flopmeter
