// SPDX-License-Identifier: Apache-2.0
//
// One picture of a running run for a terminal: text and, if wanted, color codes; it moves no
// cursor and clears nothing.
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/report/live_totals.h>
#include <flopmeter/runstore/run_directory.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace flopmeter {

struct FrameSize {
  std::size_t columns = 80;
  std::size_t rows = 0;  ///< 0: as many as it takes
};

struct FrameContent {
  const RunMetadata& run;
  const LiveTotals& totals;
  const std::vector<Finding>& findings;  ///< largest first
  double now_unix = 0;
  std::size_t finding_steps = 0;      ///< newest records that the findings are of; 0: not known
  std::optional<StepTotals> whole{};  ///< all steps of the run; empty: not known
};

/// Lines of at most `columns` cells, at most `rows` of them.
std::vector<std::string> draw_frame(const FrameContent& content, FrameSize size, bool color);

}  // namespace flopmeter
