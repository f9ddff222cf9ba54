// SPDX-License-Identifier: Apache-2.0
//
// The waterfall: where the time went between what the hardware could have needed and what the run
// took.  Losses are integer nanoseconds and sum exactly to the gap.
#pragma once

#include <flopmeter/core/result.h>
#include <flopmeter/analysis/evidence.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Where time is lost, from the device outwards: the order of the waterfall.
enum class Cause : std::uint8_t {
  no_mixed_precision,  ///< matmuls in a format that the device computes slower
  small_matmuls,       ///< matmuls below the peak of their format: too small, or of an odd shape
  memory_bound,        ///< operators that bear no FLOPs
  launch_overhead,     ///< forward and backward without an operator at work, and tiny operators
  unexplained,         ///< what no signal tells
  pipeline_bubble,
  recompute,
  padding,
  host_to_device,
  optimizer,
  straggler,  ///< communication that waited for the slowest rank
  communication,
  loop,          ///< of the step, outside all phases; and between steps
  cpu_bound,     ///< waiting for data while the processor prepared it
  data_loading,  ///< waiting for data while nothing ran
  evaluation,
  checkpoint,
};
inline constexpr std::size_t cause_count = 17;
std::string_view to_string(Cause cause);
/// What people read: "waiting for data".
std::string_view describe(Cause cause);

struct Loss {
  Cause cause = Cause::unexplained;
  std::int64_t nanoseconds = 0;
  double mfu_points = 0;  ///< 0–1; MFU before this loss minus MFU after it
};

struct Waterfall {
  std::int64_t total = 0;            ///< nanoseconds of the window
  std::int64_t ideal = 0;            ///< nanoseconds it could have needed
  double mfu = 0;                    ///< ideal / total
  std::vector<Loss> losses;          ///< all causes, in their order; sums to total - ideal
  std::vector<std::string> missing;  ///< signals that were not there, and what they would tell

  [[nodiscard]] std::int64_t lost(Cause cause) const {
    return losses[static_cast<std::size_t>(cause)].nanoseconds;
  }
  /// MFU if this much time were saved.
  [[nodiscard]] double mfu_without(std::int64_t nanoseconds) const {
    return static_cast<double>(ideal) / static_cast<double>(total - nanoseconds);
  }
};

/// An error where no MFU can be formed: no steps, no FLOPs, or no peak.
Result<Waterfall> make_waterfall(const Evidence& evidence);
Result<Waterfall> make_waterfall(const Evidence& evidence, const Sums& sums, const OpTimes& ops);

}  // namespace flopmeter
