// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/trace/run_trace.h>

namespace flopmeter {

std::optional<DeviceReport> read_run_trace(const RunDirectory& run, int rank) {
  const std::vector<RankFile> files = run.files_of(rank);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    auto trace = read_trace(RunLayout{run.path, file->stamp, rank}.trace());
    if (!trace) continue;
    auto reports = report_devices(*trace, {.peaks = run.metadata.peaks});
    for (Finding& finding : reports.front().findings) finding.rank = rank;
    return std::move(reports.front());
  }
  return std::nullopt;
}

}  // namespace flopmeter
