// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/diagnosis.h>

#include <optional>
#include <string>

namespace flopmeter {

/// A diagnosis as terminal text: verdict, budget, findings, and their effect.
std::string diagnosis_text(const Diagnosis& diagnosis,
                           const std::optional<DeviceCost>& cost = std::nullopt);

/// Two runs by cause, in time per step and per token.
std::string comparison_text(const Diagnosis& before, const Diagnosis& after);

}  // namespace flopmeter
