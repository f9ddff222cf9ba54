// SPDX-License-Identifier: Apache-2.0
//
// LiveTotals: the latest of every rank, for a view that is drawn again and again.  A few hundred
// bytes a rank.
#pragma once

#include <flopmeter/core/phase.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/report/run_overview.h>
#include <flopmeter/report/timeline.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>

namespace flopmeter {

/// Recent train steps of one rank: sums in which older steps count ever less.
struct RecentSteps {
  std::int64_t last_step = 0;
  double last_unix = 0;
  double weight = 0;  ///< steps
  double seconds = 0;
  RankUtilization mfu;
  RankUtilization hfu;
  Throughput flops;  ///< of the model, one device
  Throughput tokens;
  Throughput samples;
  std::array<std::optional<double>, phase_count> phases{};

  void add(const StepRecord& record);
  [[nodiscard]] double step_seconds() const { return weight > 0 ? seconds / weight : 0; }
  /// Seconds of a step without waiting for others.
  [[nodiscard]] double own_seconds() const;
};

class LiveTotals {
 public:
  LiveTotals();

  void add(const StepRecord& record);

  Timeline timeline;  ///< of live_curves()
  std::map<int, RecentSteps> ranks;

  /// All ranks together.
  [[nodiscard]] RecentSteps all() const;
};

/// What a live view may plot, best first: the first that has values is.
std::span<const std::string_view> live_curves();

}  // namespace flopmeter
