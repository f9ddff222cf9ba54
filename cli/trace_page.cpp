// SPDX-License-Identifier: Apache-2.0
#include "trace_page.h"

#include <flopmeter/report/report.h>

#include <chrono>

namespace flopmeter {

std::string trace_page(const TraceReport& report, const Diagnosis& diagnosis) {
  const DeviceReport& first = report.ranks.front();
  ReportContent content{.source = first.file, .diagnosis = diagnosis};
  content.metadata.peaks = first.peaks.value_or(PeakTable{});
  content.metadata.peaks.device = first.device_name.value_or(content.metadata.peaks.device);
  content.metadata.world_size = first.world_size;
  content.notes = report.notes;
  content.profiles = first.profiles;
  content.timeline = first.timeline;
  for (const DeviceReport& rank : report.ranks) {
    content.notes.insert(content.notes.end(), rank.notes.begin(), rank.notes.end());
    for (StepRecord record : rank.records) {
      record.rank = rank.rank.value_or(record.rank);
      content.records.push_back(record);
    }
  }
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return report_page(report_json(content, {FLOPMETER_VERSION, now.count()}));
}

}  // namespace flopmeter
