// SPDX-License-Identifier: Apache-2.0
//
// LiveTotals: the newest steps of every rank and all of them, for a view that is drawn repeatedly.
// A few kilobytes per rank.
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/report/timeline.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

namespace flopmeter {

/// The newest 10 to 19 train steps of one rank.
class RecentSteps {
 public:
  void add(const StepRecord& record);
  [[nodiscard]] StepTotals totals() const;
  [[nodiscard]] const StepTotals& since_start() const { return since_start_; }

 private:
  StepTotals previous_;  ///< a full block of steps
  StepTotals current_;
  StepTotals since_start_;
};

class LiveTotals {
 public:
  LiveTotals();

  void add(const StepRecord& record);

  Timeline timeline;  ///< of live_curves()
  std::map<int, RecentSteps> ranks;

  /// Set if records before the first one were not read.
  bool is_cut = false;

  /// The newest steps of all ranks together.
  [[nodiscard]] StepTotals all() const;
  /// All steps of all ranks; empty if some were not read.
  [[nodiscard]] std::optional<StepTotals> run() const;
};

/// Quantities that a live view can plot, in order of preference: the first with values is plotted.
std::span<const std::string_view> live_curves();

}  // namespace flopmeter
