// SPDX-License-Identifier: Apache-2.0
//
// LiveTotals: the newest steps of every rank, for a view that is drawn repeatedly.  About a
// kilobyte per rank.
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/report/timeline.h>

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

namespace flopmeter {

/// The newest 10 to 19 train steps of one rank.
class RecentSteps {
 public:
  void add(const StepRecord& record);
  [[nodiscard]] StepTotals totals() const;

 private:
  StepTotals previous_;  ///< a full block of steps
  StepTotals current_;
};

class LiveTotals {
 public:
  LiveTotals();

  void add(const StepRecord& record);

  Timeline timeline;  ///< of live_curves()
  std::map<int, RecentSteps> ranks;

  /// All ranks together.
  [[nodiscard]] StepTotals all() const;
};

/// Quantities that a live view can plot, in order of preference: the first with values is plotted.
std::span<const std::string_view> live_curves();

}  // namespace flopmeter
