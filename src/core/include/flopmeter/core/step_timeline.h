// SPDX-License-Identifier: Apache-2.0
//
// StepTimeline: the work of one step on a time axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flopmeter {

class JsonWriter;

struct StepTimeline {
  struct Span {
    double start = 0;  ///< seconds since the step began
    double seconds = 0;
    std::string name;
  };
  /// Spans that do not overlap.
  struct Lane {
    std::string name;
    std::string kind;  ///< compute, communication, memcpy, memset, host, operators, phases, or idle
    std::vector<Span> spans;
  };

  std::string step;  ///< which one: "ProfilerStep#5, the step of median length"
  double seconds = 0;
  std::vector<Lane> lanes;
  std::int64_t omitted = 0;  ///< spans that were too short to be kept
};

/// An object with a table of the names, most of which repeat.
void write_json(JsonWriter& json, const StepTimeline& timeline);

}  // namespace flopmeter
