// SPDX-License-Identifier: Apache-2.0
//
// DeviceTimes: the times of one record on the device, computed from its marks.
#pragma once

#include <flopmeter/core/phase.h>
#include <flopmeter/core/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace flopmeter {

/// One point of the program, seen by the host and, if an event was recorded, by the device.
struct DeviceMark {
  enum class Kind : std::uint8_t {
    phase,  ///< a phase, or a record, begins or ends
    synchronization_begin,
    synchronization_end,
    copy_begin,
    copy_end,
    blocking_copy_end,
    collective,
    collective_wait_begin,
    collective_wait_end,
    backward_begin,
    graph_end,
    backward_end,
    unrecorded_phase,  ///< a phase begins, without an event
  };
  Kind kind = Kind::phase;
  Phase phase = Phase::other;  ///< that follows
  bool timed = false;          ///< device_ns is known
  std::int64_t stream = 0;
  std::int64_t bytes = 0;  ///< of a copy that begins
  std::int64_t host_ns = 0;
  std::int64_t device_ns = 0;               ///< of the device's clock
  std::optional<std::int64_t> lag_ns = {};  ///< device time minus host time, by one clock
};

struct DeviceTimes {
  Seconds step;
  /// Idle time has the phase in which the device was idle.  Empty if a mark
  /// of a phase is missing or on another stream.
  std::optional<std::array<Seconds, phase_count>> phases;
  std::optional<Seconds> lag;  ///< at the end
  /// Bounds of the idle time, and the upper one by what the host did meanwhile, apart from blocking
  /// copies.
  struct Idle {
    Seconds min;
    Seconds max;
    Seconds data;
    Seconds synchronization;
    Seconds loop;
    Seconds launch;
  };
  std::optional<Idle> idle;
  std::optional<Seconds> exposed_communication;  ///< empty: no collective was enqueued
  std::optional<Seconds> exposed_copy;
  std::optional<Seconds> synchronization;  ///< host time
  std::optional<std::int64_t> synchronizations;
};

/// Earlier copies, and conclusions from them about later ones.
class CopyTimes {
 public:
  /// Adds a blocking copy and returns the least time of its size: the host wakes up some time after
  /// the end of a blocking copy, and only then records a mark.
  std::int64_t least(std::int64_t bytes, std::int64_t nanoseconds) noexcept;
  /// Adds a mark of a copy on another stream than that of the steps.
  void follow(const DeviceMark& mark) noexcept;
  /// The time that the steps' stream waited for copies on another stream from `begin_ns` to
  /// `end_ns`, if it did: it continues when the copies end.
  [[nodiscard]] std::int64_t waited(std::int64_t begin_ns, std::int64_t end_ns) const noexcept;

 private:
  struct Size {
    std::int64_t bytes = -1;
    std::int64_t least = 0;
  };
  std::array<Size, 16> sizes_{};
  std::size_t next_ = 0;  ///< place of the next copy
  static constexpr std::int64_t long_ago = INT64_MIN / 2;
  std::int64_t side_begin_ns_ = long_ago;  ///< of the last copies in a row on another stream
  std::int64_t side_end_ns_ = long_ago;
};

/// From the marks of a record, the first and the last of which bound it.  `least_lag_ns`: of any
/// mark so far, the time that the device needs to see new work.  Empty if the bounds are not timed
/// on one stream.
std::optional<DeviceTimes> device_times(std::span<const DeviceMark> marks,
                                        std::int64_t least_lag_ns,
                                        CopyTimes& copies) noexcept;

}  // namespace flopmeter
