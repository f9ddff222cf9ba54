// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "interval_rows.h"

#include <string>

namespace flopmeter {

/// The banner of the session and the column names.
std::string metrics_header(const RunContext& run);

/// One row of the table with its line end.
std::string metrics_line(const IntervalRow& row);

}  // namespace flopmeter
