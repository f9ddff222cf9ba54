// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a profiler trace: an error or a report whose times add up, never a crash.
#include <flopmeter/core/json_writer.h>
#include <flopmeter/trace/trace_report.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>

namespace {

void check_sum(const flopmeter::TimeSplit& split) {
  const auto exposed = std::accumulate(split.exposed.begin(), split.exposed.end(), split.idle);
  if (exposed != split.window || split.idle < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopmeter;
  auto trace =
      parse_trace({reinterpret_cast<const char*>(data), size}, {.threads = 1, .progress = {}});
  if (!trace) return 0;
  std::vector<DeviceReport> reports = report_devices(*trace);
  for (const DeviceReport& report : reports) {
    check_sum(report.split);
    for (const TraceStepReport& step : report.steps) check_sum(step.split);
  }
  std::string text;
  JsonWriter json{text};
  json.begin_object();
  write_json_members(json, merge_ranks(std::move(reports)));
  json.end_object();
  return 0;
}
