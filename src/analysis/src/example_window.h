// SPDX-License-Identifier: Apache-2.0
//
// Windows for the examples of the rules: a healthy baseline, into which examples inject a fault.
#pragma once

#include <flopmeter/analysis/evidence.h>

#include <functional>

namespace flopmeter {

/// Sixty steps of 100 ms in bf16 at 50 % MFU with a profile; then each record and the whole are
/// handed to those that spoil them.
Evidence example_window(const std::function<void(StepRecord&)>& spoil_step = {},
                        const std::function<void(Evidence&)>& spoil = {});

/// Adds time to a phase of the step, and so to the step; its MFU falls as it must.
void prolong(StepRecord& record, Phase phase, double seconds);

}  // namespace flopmeter
