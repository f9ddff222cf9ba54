// SPDX-License-Identifier: Apache-2.0
#include "device_times.h"

#include <algorithm>

namespace flopmeter {
namespace {

using Kind = DeviceMark::Kind;

Seconds seconds(std::int64_t nanoseconds) noexcept {
  return {static_cast<double>(nanoseconds) / 1e9};
}

/// A synchronization copies its result to the host and wakes a thread.
constexpr std::int64_t wake_up_ns = 20'000;

/// Sums over the intervals between timed marks of one stream.
class Sums {
 public:
  Sums(std::int64_t stream, std::int64_t least_lag_ns) noexcept
      : stream_(stream), least_lag_ns_(least_lag_ns) {}

  void add(const DeviceMark& mark) noexcept {
    if (mark.timed && mark.stream == stream_) {
      if (before_ != nullptr) close(mark);
      before_ = &mark;
    } else if (mark.timed) {
      other_streams_ = true;
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
      // While another stream works, nothing is known about the device as a whole.
      const std::int64_t data = other_streams_ ? 0 : idle_in_data_;
      times.idle_min = seconds(std::min(data + idle_in_synchronization_, idle_max_));
      times.idle_max = seconds(idle_max_);
    }
    times.exposed_copy = seconds(copy_);
    times.synchronization = seconds(synchronization_);
    times.synchronizations = synchronizations_;
  }

 private:
  void close(const DeviceMark& mark) noexcept {
    const std::int64_t device = std::max<std::int64_t>(mark.device_ns - before_->device_ns, 0);
    const bool is_communication = mark.kind == Kind::backward_end && graph_ended_ && collectives_;
    if (is_communication) {
      communication_ += device;
    } else {
      phases_[static_cast<std::size_t>(phase_)] += device;
    }
    const bool is_copy = mark.kind == Kind::copy_end || mark.kind == Kind::blocking_copy_end;
    if (is_copy) copy_ += device;
    if (!before_->lag_ns) {
      lags_known_ = false;
      return;
    }
    // All work of the interval is enqueued when the host reaches its end, and the device reaches
    // its begin `lag` after the host: only between these two moments can the device run dry.
    const std::int64_t host = mark.host_ns - before_->host_ns;
    const std::int64_t lag = std::max<std::int64_t>(*before_->lag_ns - least_lag_ns_, 0);
    const std::int64_t idle = std::clamp<std::int64_t>(host - lag, 0, device);
    idle_max_ += idle;
    // Nothing is enqueued while the host waits for data.
    if (phase_ == Phase::data && !is_copy) idle_in_data_ += idle;
  }

  void follow(const DeviceMark& mark) noexcept {
    switch (mark.kind) {
      case Kind::phase:
        if (!mark.timed || mark.stream != stream_) phases_unknown_ = true;
        if (mark.phase == Phase::forward) backward_over_ = false;
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
      case Kind::synchronization_begin:
      case Kind::copy_begin:
        wait_ = &mark;
        break;
      case Kind::synchronization_end:
        end_wait(mark, true);
        break;
      case Kind::copy_end:
        end_wait(mark, false);
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
    if (mark.kind == Kind::synchronization_end && begin->timed && begin->lag_ns)
      idle_in_synchronization_ +=
          std::max<std::int64_t>(host - std::max<std::int64_t>(*begin->lag_ns, 0) - wake_up_ns, 0);
  }

  const std::int64_t stream_;
  const std::int64_t least_lag_ns_;
  const DeviceMark* before_ = nullptr;
  const DeviceMark* wait_ = nullptr;
  Phase marked_phase_ = Phase::other;
  Phase phase_ = Phase::other;
  bool backward_over_ = false;
  bool graph_ended_ = false;
  bool collectives_ = false;
  bool other_streams_ = false;
  bool phases_unknown_ = false;
  bool lags_known_ = true;
  std::array<std::int64_t, phase_count> phases_{};
  std::int64_t communication_ = 0;
  std::int64_t copy_ = 0;
  std::int64_t idle_max_ = 0;
  std::int64_t idle_in_data_ = 0;
  std::int64_t idle_in_synchronization_ = 0;
  std::int64_t synchronization_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace

std::optional<DeviceTimes> device_times(std::span<const DeviceMark> marks,
                                        std::int64_t least_lag_ns) noexcept {
  if (marks.size() < 2) return std::nullopt;
  const DeviceMark& first = marks.front();
  const DeviceMark& last = marks.back();
  if (!first.timed || !last.timed || first.stream != last.stream) return std::nullopt;
  if (last.device_ns < first.device_ns) return std::nullopt;
  DeviceTimes times;
  times.step = seconds(last.device_ns - first.device_ns);
  Sums sums{first.stream, least_lag_ns};
  for (const DeviceMark& mark : marks) sums.add(mark);
  sums.write(times, last);
  return times;
}

}  // namespace flopmeter
