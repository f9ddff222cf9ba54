// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "interval_rows.h"

#include <string>

namespace flopmeter {

/// The session's banner and column names.
std::string metrics_header(const RunInfo& run);

/// One row of the table, with its line end.
std::string metrics_line(const IntervalRow& row);

}  // namespace flopmeter
