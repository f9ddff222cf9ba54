// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace_diagnosis.h"

#include <flopmeter/trace/trace_report.h>

#include <string>

namespace flopmeter {

/// A trace report as text.
std::string trace_text(const TraceReport& report, const Diagnosis& diagnosis);

}  // namespace flopmeter
