// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/trace/trace_report.h>

#include <string>

namespace flopmeter {

/// A trace report for people.
std::string trace_text(const TraceReport& report);

}  // namespace flopmeter
