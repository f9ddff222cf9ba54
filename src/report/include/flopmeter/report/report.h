// SPDX-License-Identifier: Apache-2.0
//
// A run as one self-contained page that loads nothing and escapes all text of the run.
#pragma once

#include <flopmeter/core/result.h>

#include <string>
#include <string_view>

namespace flopmeter {

struct ReportOptions {
  std::string version;      ///< of the program, for the last line
  double written_unix = 0;  ///< when the report is made
};

/// Data of the page of a run directory, as JSON ("flopmeter.report/2").
Result<std::string> report_json(const std::string& directory, const ReportOptions& options);

/// The page that shows such a document: one HTML text with style, script and charts in it.
std::string report_page(std::string_view json);

}  // namespace flopmeter
