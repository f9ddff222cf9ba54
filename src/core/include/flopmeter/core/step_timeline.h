// SPDX-License-Identifier: Apache-2.0
//
// StepTimeline: the work of one step on a time axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flopmeter {

struct StepTimeline {
  struct Span {
    double start = 0;  ///< seconds since the step began
    double seconds = 0;
    std::string name;
  };
  /// Spans that do not overlap.
  struct Lane {
    std::string name;
    std::string kind;  ///< compute, communication, memcpy, memset, or host
    std::vector<Span> spans;
  };

  std::string step;  ///< "ProfilerStep#5"; empty: all of the trace
  double seconds = 0;
  std::vector<Lane> lanes;
  std::int64_t omitted = 0;  ///< spans that were too short to be kept
};

}  // namespace flopmeter
