// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace_diagnosis.h"

#include <string>

namespace flopmeter {

/// A trace as the page of `flopmeter report`, with a timeline of one step.
std::string trace_page(const TraceReport& report, const Diagnosis& diagnosis);

}  // namespace flopmeter
