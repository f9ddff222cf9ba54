// SPDX-License-Identifier: Apache-2.0
#include "device_peaks.h"

#include <flopmeter/catalog/devices.h>

#include <algorithm>

namespace flopmeter {

std::optional<std::string> device_name(const Trace& trace, std::optional<std::int32_t> index) {
  if (!index || trace.devices.empty()) return std::nullopt;
  const std::string& first = trace.devices.front().name;
  // Under ROCm the index of a kernel is an agent's number, not that of the list.
  const bool same = std::all_of(trace.devices.begin(),
                                trace.devices.end(),
                                [&](const TraceDevice& device) { return device.name == first; });
  const auto listed = std::find_if(trace.devices.begin(),
                                   trace.devices.end(),
                                   [&](const TraceDevice& device) { return device.id == *index; });
  if (!same && listed == trace.devices.end()) return std::nullopt;
  const std::string& name = same ? first : listed->name;
  return name.empty() ? std::nullopt : std::optional{name};
}

std::optional<PeakTable> known_peaks(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const auto device = find_device(*name);
  return device ? std::optional{peaks_of(**device)} : std::nullopt;
}

}  // namespace flopmeter
