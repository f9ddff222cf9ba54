// SPDX-License-Identifier: Apache-2.0
//
// TimeBudget: the time of the train steps by cause.  Every nanosecond belongs to exactly one cause,
// shares sum to 100 %, none is negative, and the share of `useful` is MFU.
#pragma once

#include <flopmeter/core/units.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

struct Evidence;
struct OpTimes;

/// Where time goes.  A rule may define a separate cause: Rule::cause and Rule::claim.
struct Cause {
  std::string_view id;    ///< "data_loading"
  std::string_view text;  ///< "waiting for data"

  friend constexpr bool operator==(const Cause& a, const Cause& b) { return a.id == b.id; }
};

namespace causes {
inline constexpr Cause useful{"useful", "useful math"};
inline constexpr Cause matmul_inefficiency{"matmul_inefficiency", "matmuls below peak"};
/// Replaces the two above if MFU is not known.
inline constexpr Cause compute{"compute", "matmuls"};
inline constexpr Cause memory_bound{"memory_bound", "memory-bound operators"};
inline constexpr Cause launch_overhead{"launch_overhead", "launch overhead"};
inline constexpr Cause communication{"communication", "exposed communication"};
inline constexpr Cause straggler{"straggler", "waiting for the slowest rank"};
inline constexpr Cause pipeline_bubble{"pipeline_bubble", "pipeline bubble"};
inline constexpr Cause recompute{"recompute", "activation recomputation"};
inline constexpr Cause padding{"padding", "work on padding"};
inline constexpr Cause host_to_device{"host_to_device", "copies between host and device"};
inline constexpr Cause synchronization{"synchronization", "device synchronization"};
inline constexpr Cause optimizer{"optimizer", "optimizer"};
inline constexpr Cause data_loading{"data_loading", "waiting for data"};
inline constexpr Cause cpu_bound{"cpu_bound", "waiting for the CPU to prepare data"};
inline constexpr Cause loop{"loop", "loop code between phases and steps"};
inline constexpr Cause busy_machine{"busy_machine", "waiting for a processor"};
inline constexpr Cause unexplained{"unexplained", "not explained"};
}  // namespace causes

/// Seconds of a mean step that evidence assigns to a cause.
struct CauseTime {
  Cause cause;
  double seconds = 0;
};

/// How a device spent a mean step, from device marks or a trace.  If it is known, it replaces the
/// times of the phases.
struct DeviceTime {
  double busy = 0;              ///< at least one kernel other than exposed communication ran
  double optimizer = 0;         ///< part of busy
  std::vector<CauseTime> idle;  ///< rest of the step by cause; what is missing is unexplained
};

struct BudgetLine {
  Cause cause;
  std::int64_t nanoseconds = 0;
};

struct TimeBudget {
  std::int64_t total = 0;         ///< nanoseconds of the train steps; mean over ranks
  std::vector<BudgetLine> lines;  ///< causes that took time, largest first; empty if MFU exceeds 1
  std::vector<std::string> missing_signals;  ///< what was not measured, and what that hides

  [[nodiscard]] std::int64_t nanoseconds(const Cause& cause) const;
  [[nodiscard]] double seconds(const Cause& cause) const {
    return static_cast<double>(nanoseconds(cause)) / 1e9;
  }
  /// 0 to 1.
  [[nodiscard]] double share(const Cause& cause) const {
    return total > 0 ? static_cast<double>(nanoseconds(cause)) / static_cast<double>(total) : 0;
  }
};

/// The budget of the train steps in the evidence; empty if there are none.
TimeBudget make_budget(const Evidence& evidence);
TimeBudget make_budget(const Evidence& evidence, const OpTimes& ops);

}  // namespace flopmeter
