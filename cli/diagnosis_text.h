// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/analysis/diagnosis.h>

#include <string>

namespace flopmeter {

/// A diagnosis for people.
std::string diagnosis_text(const Diagnosis& diagnosis, const std::optional<Price>& price);

/// What changed between two runs, for people.
std::string comparison_text(const Diagnosis& before, const Diagnosis& after);

}  // namespace flopmeter
