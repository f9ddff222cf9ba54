// SPDX-License-Identifier: Apache-2.0
//
// A run as one self-contained page that loads nothing and escapes all text of the run.
#pragma once

#include <flopmeter/analysis/diagnosis.h>
#include <flopmeter/core/op_profile.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/run_metadata.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_timeline.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

struct ReportOptions {
  std::string version;                           ///< of the program, for the last line
  double written_unix = 0;                       ///< when the report is made
  std::function<void(double share)> progress{};  ///< called while a run directory is read
};

/// Data of the page of a run directory, as JSON ("flopmeter.report/2").
Result<std::string> report_json(const std::string& directory, const ReportOptions& options);

/// A run that is not in a run directory, such as that of a trace.
struct ReportContent {
  std::string source;  ///< file
  RunMetadata metadata;
  std::vector<StepRecord> records;
  Diagnosis diagnosis;
  std::vector<OpProfile> profiles;
  std::optional<StepTimeline> timeline;
  std::vector<std::string> notes;
};
std::string report_json(const ReportContent& content, const ReportOptions& options);

/// The page that shows such a document: one HTML text with style, script and charts in it.
std::string report_page(std::string_view json);

}  // namespace flopmeter
