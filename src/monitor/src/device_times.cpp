// SPDX-License-Identifier: Apache-2.0
#include "device_times.h"

#include <algorithm>
#include <utility>

namespace flopmeter {
namespace {

using Kind = DeviceMark::Kind;

Seconds seconds(std::int64_t nanoseconds) noexcept {
  return {static_cast<double>(nanoseconds) / 1e9};
}

/// A synchronization copies its result to the host and wakes a thread.
constexpr std::int64_t wake_up_ns = 20'000;

/// The clocks of host and device are compared this exactly.
constexpr std::int64_t clock_error_ns = 20'000;
/// The longest that a copy without its bytes takes, and each of its bytes on the slowest link.
constexpr std::int64_t longest_copy_start_ns = 50'000;
constexpr std::int64_t longest_byte_ns = 2;
/// The device starts the next of several copies this fast.
constexpr std::int64_t between_copies_ns = 100'000;

/// Sums over the intervals between timed marks of one stream.
class StreamTotals {
 public:
  StreamTotals(std::int64_t stream, std::int64_t least_lag_ns, CopyTimes& copies) noexcept
      : stream_(stream), least_lag_ns_(least_lag_ns), copies_(copies) {}

  void add(const DeviceMark& mark) noexcept {
    if (mark.timed && mark.stream == stream_) {
      if (before_ != nullptr) close(mark);
      before_ = &mark;
    } else if (mark.timed) {
      other_streams_ = true;
      copies_.follow(mark);
    }
    follow(mark);
  }

  void write(DeviceTimes& times, const DeviceMark& last) const noexcept {
    if (!phases_unknown_) {
      times.phases.emplace();
      for (std::size_t i = 0; i < phase_count; ++i) (*times.phases)[i] = seconds(phases_[i]);
      if (collectives_) {
        times.exposed_communication = seconds(communication_);
        (*times.phases)[static_cast<std::size_t>(Phase::communication)] =
            seconds(phases_[static_cast<std::size_t>(Phase::communication)] + communication_);
      }
    }
    if (last.lag_ns) times.lag = seconds(std::max<std::int64_t>(*last.lag_ns - least_lag_ns_, 0));
    if (lags_known_) {
      const std::int64_t max =
          idle_.data + idle_.synchronization + idle_.loop + idle_.launch + idle_in_copies_;
      // While another stream works, nothing is known about the device as a whole.
      const std::int64_t data = other_streams_ ? 0 : idle_.data;
      times.idle = {.min = seconds(std::min(data + idle_at_least_, max)),
                    .max = seconds(max),
                    .data = seconds(idle_.data),
                    .synchronization = seconds(idle_.synchronization),
                    .loop = seconds(idle_.loop),
                    .launch = seconds(idle_.launch)};
    }
    times.exposed_copy = seconds(copy_);
    times.synchronization = seconds(synchronization_);
    times.synchronizations = synchronizations_;
  }

 private:
  void close(const DeviceMark& mark) noexcept {
    const std::int64_t device = std::max<std::int64_t>(mark.device_ns - before_->device_ns, 0);
    const bool is_communication = (mark.kind == Kind::backward_end && graph_ended_) ||
                                  (mark.kind == Kind::collective_wait_end && collectives_);
    if (is_communication) {
      communication_ += device;
    } else {
      phases_[static_cast<std::size_t>(phase_)] += device;
    }
    const bool is_copy = mark.kind == Kind::copy_end || mark.kind == Kind::blocking_copy_end;
    const bool may_wait = !is_copy && (phase_ == Phase::data || phase_ == Phase::other);
    const std::int64_t for_copies =
        may_wait ? copies_.waited(before_->device_ns, mark.device_ns) : 0;
    copy_ += for_copies;
    if (!before_->lag_ns) {
      if (is_copy) copy_ += device;
      lags_known_ = false;
      return;
    }
    // All work of the interval is enqueued when the host reaches its end, and the device reaches
    // its begin `lag` after the host: only between these two moments can the device run dry.
    const std::int64_t host = mark.host_ns - before_->host_ns;
    const std::int64_t lag = std::max<std::int64_t>(*before_->lag_ns - least_lag_ns_, 0);
    std::int64_t idle = std::clamp<std::int64_t>(host - lag + clock_error_ns, 0, device);
    if (is_copy && waits(mark, host - lag)) {
      waited_for_copy_ = true;
      const std::int64_t copy = copies_.least(before_->bytes, device);
      const std::int64_t after = std::min(device - copy, idle);
      copy_ += copy;
      idle_.synchronization += after;
      idle_in_copies_ += idle - after;
      return;
    }
    waited_for_copy_ = false;
    if (is_copy) copy_ += device;
    if (is_copy || is_communication || for_copies > 0) idle = std::min(idle, wake_up_ns);
    const std::int64_t waited = std::min(std::exchange(blocked_idle_, 0), idle);
    idle_.synchronization += waited;
    idle_in(phase_) += idle - waited;
  }

  /// Whether the host waited for a copy: some memory makes every copy a blocking one.
  [[nodiscard]] bool waits(const DeviceMark& end, std::int64_t after_begin_ns) const noexcept {
    if (end.kind == Kind::blocking_copy_end) return true;
    return end.lag_ns && *end.lag_ns - least_lag_ns_ < wake_up_ns && after_begin_ns > wake_up_ns;
  }

  /// Idle time by the activity of the host in a phase.  Nothing is enqueued while it waits for
  /// data.
  std::int64_t& idle_in(Phase phase) noexcept {
    switch (phase) {
      case Phase::data:
        return idle_.data;
      case Phase::other:
        return in_pass_ ? idle_.launch : idle_.loop;
      case Phase::checkpoint:
        return idle_.loop;
      default:
        return idle_.launch;
    }
  }

  void follow(const DeviceMark& mark) noexcept {
    switch (mark.kind) {
      case Kind::phase:
        if (!mark.timed || mark.stream != stream_) phases_unknown_ = true;
        [[fallthrough]];
      case Kind::unrecorded_phase:
        if (mark.phase == Phase::forward) backward_over_ = false;
        if (mark.phase == Phase::data) backward_over_ = true;
        if (mark.phase == Phase::forward) in_pass_ = true;
        if (mark.phase == Phase::optimizer || mark.phase == Phase::data) in_pass_ = false;
        marked_phase_ = mark.phase;
        break;
      case Kind::backward_begin:
        backward_over_ = graph_ended_ = false;
        break;
      case Kind::graph_end:
        graph_ended_ = true;
        break;
      case Kind::backward_end:
        backward_over_ = true;
        graph_ended_ = false;
        break;
      case Kind::collective:
        collectives_ = true;
        break;
      case Kind::collective_wait_begin:
      case Kind::collective_wait_end:
        break;
      case Kind::synchronization_begin:
      case Kind::copy_begin:
        wait_ = &mark;
        break;
      case Kind::synchronization_end:
        end_wait(mark, true);
        break;
      case Kind::copy_end:
        end_wait(mark, waited_for_copy_);
        break;
      case Kind::blocking_copy_end:
        end_wait(mark, true);
        break;
    }
    // The tracker takes backward to last until the optimizer begins.
    phase_ = marked_phase_ == Phase::backward && backward_over_ ? Phase::other : marked_phase_;
  }

  void end_wait(const DeviceMark& mark, bool waited) noexcept {
    const DeviceMark* begin = wait_;
    wait_ = nullptr;
    if (begin == nullptr || !waited) return;
    ++synchronizations_;
    const std::int64_t host = mark.host_ns - begin->host_ns;
    synchronization_ += host;
    // The device is idle from its last work until the host, which enqueues nothing, wakes up.
    if (mark.kind != Kind::synchronization_end || !begin->timed || !begin->lag_ns) return;
    const std::int64_t idle =
        std::max<std::int64_t>(host - std::max<std::int64_t>(*begin->lag_ns, 0), 0);
    blocked_idle_ += idle;
    idle_at_least_ += std::max<std::int64_t>(idle - wake_up_ns, 0);
  }

  const std::int64_t stream_;
  const std::int64_t least_lag_ns_;
  CopyTimes& copies_;
  const DeviceMark* before_ = nullptr;
  const DeviceMark* wait_ = nullptr;
  Phase marked_phase_ = Phase::other;
  Phase phase_ = Phase::other;
  bool backward_over_ = false;
  bool in_pass_ = false;  ///< between forward and the optimizer
  bool waited_for_copy_ = false;
  bool graph_ended_ = false;
  bool collectives_ = false;
  bool other_streams_ = false;
  bool phases_unknown_ = false;
  bool lags_known_ = true;
  std::array<std::int64_t, phase_count> phases_{};
  std::int64_t communication_ = 0;
  std::int64_t copy_ = 0;
  struct {
    std::int64_t data = 0;
    std::int64_t synchronization = 0;
    std::int64_t loop = 0;
    std::int64_t launch = 0;
  } idle_;
  std::int64_t idle_in_copies_ = 0;  ///< at most
  std::int64_t blocked_idle_ = 0;    ///< in the open interval, while the host was blocked
  std::int64_t idle_at_least_ = 0;  ///< lower bound over all intervals, without the time to wake up
  std::int64_t synchronization_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace

std::int64_t CopyTimes::least(std::int64_t bytes, std::int64_t nanoseconds) noexcept {
  for (Size& size : sizes_) {
    if (size.bytes == bytes) return size.least = std::min(size.least, nanoseconds);
  }
  const std::int64_t longest = longest_copy_start_ns + longest_byte_ns * bytes;
  sizes_[next_] = {.bytes = bytes, .least = std::min(nanoseconds, longest)};
  next_ = (next_ + 1) % sizes_.size();
  return std::min(nanoseconds, longest);
}

void CopyTimes::follow(const DeviceMark& mark) noexcept {
  if (mark.kind == Kind::copy_begin && mark.device_ns > side_end_ns_ + between_copies_ns)
    side_begin_ns_ = mark.device_ns;
  if (mark.kind == Kind::copy_end || mark.kind == Kind::blocking_copy_end)
    side_end_ns_ = mark.device_ns;
}

std::int64_t CopyTimes::waited(std::int64_t begin_ns, std::int64_t end_ns) const noexcept {
  const bool ends_with_copies =
      end_ns >= side_end_ns_ - clock_error_ns && end_ns <= side_end_ns_ + clock_error_ns;
  return ends_with_copies ? std::max<std::int64_t>(end_ns - std::max(begin_ns, side_begin_ns_), 0)
                          : 0;
}

std::optional<DeviceTimes> device_times(std::span<const DeviceMark> marks,
                                        std::int64_t least_lag_ns,
                                        CopyTimes& copies) noexcept {
  if (marks.size() < 2) return std::nullopt;
  const DeviceMark& first = marks.front();
  const DeviceMark& last = marks.back();
  if (!first.timed || !last.timed || first.stream != last.stream) return std::nullopt;
  if (last.device_ns < first.device_ns) return std::nullopt;
  DeviceTimes times;
  times.step = seconds(last.device_ns - first.device_ns);
  StreamTotals sums{first.stream, least_lag_ns, copies};
  for (const DeviceMark& mark : marks) sums.add(mark);
  sums.write(times, last);
  return times;
}

}  // namespace flopmeter
