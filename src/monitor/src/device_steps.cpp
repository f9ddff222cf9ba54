// SPDX-License-Identifier: Apache-2.0
#include "device_steps.h"

#include "fork_guard.h"

#include <algorithm>
#include <utility>

namespace flopmeter {

using Kind = DeviceMark::Kind;

DeviceSteps::DeviceSteps(DeviceClock* device, const Clock& clock)
    : device_(device), clock_(clock), generation_(fork_generation()) {}

DeviceSteps::~DeviceSteps() {
  // A child of a fork must not touch the device.
  if (device_ != nullptr && generation_ == fork_generation()) device_->listen(nullptr);
}

/// The device is known once the model has run on it; memory is allocated only then.
void DeviceSteps::open() noexcept try {
  if (device_ == nullptr || state_ != DeviceClock::State::no_device) return;
  if (generation_ != fork_generation()) return;
  const DeviceClock::State state = device_->open();
  if (state == DeviceClock::State::ready) {
    marks_.resize(most_marks);
    waiting_slots_.resize(most_waiting);
    scratch_.reserve(most_marks);
    device_->listen(this);
  }
  state_ = state;
} catch (...) {
  state_ = DeviceClock::State::unsupported;  // no memory
}

/// An event could not be read: no device time for the rest of the run.
void DeviceSteps::stop() noexcept {
  device_->listen(nullptr);
  const std::lock_guard lock{mutex_};
  state_ = DeviceClock::State::unsupported;
  gives_up_ = true;
  recording_ = false;
}

/// False if there is no room.  A mark that cannot be recorded, for example because a graph is being
/// captured, is added without a time.
bool DeviceSteps::add(Kind kind, Phase phase, bool timed) noexcept {
  if (end_ - begin_ == most_marks) return false;
  const std::int64_t now = clock_.monotonic();
  const DeviceClock::Recorded recorded = timed ? device_->record() : DeviceClock::Recorded{};
  last_mark_ns_ = clock_.monotonic();
  cost_ns_ += last_mark_ns_ - now;
  Entry& entry = at(end_++);
  entry.event = recorded.event;
  entry.mark = {.kind = kind, .phase = phase, .stream = recorded.stream, .host_ns = now};
  return true;
}

void DeviceSteps::start(bool continues) noexcept {
  open();
  if (state_ != DeviceClock::State::ready) return;
  const std::lock_guard lock{mutex_};
  free_marks();
  cost_ns_ = 0;
  events_ = 0;
  recording_ = true;
  if (continues && end_ != begin_ && at(end_ - 1).mark.kind == Kind::phase) {
    at(end_ - 1).mark.phase = Phase::other;
    complete_ = true;
  } else {
    complete_ = add(Kind::phase, Phase::other, true);
  }
  first_ = complete_ ? end_ - 1 : end_;
}

void DeviceSteps::mark_phase(Phase phase, bool ends) noexcept {
  if (!recording_) return;
  const std::lock_guard lock{mutex_};
  if (!complete_) return;
  DeviceMark& last = at(end_ - 1).mark;
  const bool is_begin = end_ - 1 == first_;  // which cannot be the end of the record too
  if (last.kind == Kind::phase && !(ends && is_begin) &&
      clock_.monotonic() - last_mark_ns_ < same_mark_ns) {
    last.phase = phase;
  } else {
    complete_ = add(Kind::phase, phase, true);
  }
}

void DeviceSteps::discard() noexcept {
  if (state_ != DeviceClock::State::ready) return;
  const std::lock_guard lock{mutex_};
  recording_ = false;
}

void DeviceSteps::on(DeviceEvent event) noexcept {
  if (generation_ != fork_generation()) return;
  const auto kind = static_cast<Kind>(static_cast<int>(event) + 1);
  const bool timed = event != DeviceEvent::synchronization_end &&
                     event != DeviceEvent::collective && event != DeviceEvent::backward_begin;
  const std::lock_guard lock{mutex_};
  if (recording_ && complete_ && ++events_ <= most_events) complete_ = add(kind, {}, timed);
}

DeviceSteps::Fate DeviceSteps::take(const Slot& slot, bool timed) noexcept {
  if (state_ == DeviceClock::State::no_device) return Fate::host;
  if (waiting_ == most_waiting) return Fate::untimed;
  const std::lock_guard lock{mutex_};
  timed = timed && recording_ && complete_;
  recording_ = false;
  if (!timed && waiting_ == 0) return Fate::untimed;
  Waiting& waiting = waiting_slots_[(first_waiting_ + waiting_) % most_waiting];
  ++waiting_;
  waiting.slot = slot;
  waiting.first = timed ? first_ : end_;
  waiting.last = end_ - 1;
  waiting.timed = timed;
  return Fate::deferred;
}

/// Ties the clocks of host and device to each other.
void DeviceSteps::anchor() noexcept {
  const std::int64_t now = clock_.monotonic();
  if (offset_ns_ && now - anchored_ns_ < anchor_interval_ns) return;
  DeviceClock::Anchor anchor;
  if (!device_->anchor(anchor)) return;
  offset_ns_ = anchor.host_ns - anchor.device_ns;
  anchored_ns_ = now;
}

void DeviceSteps::read() noexcept {
  if (state_ != DeviceClock::State::ready || generation_ != fork_generation()) return;
  auto reading = DeviceClock::Reading::reached;
  {
    const std::lock_guard lock{mutex_};
    anchor();
    while (unread_ != end_) {
      read_one(at(unread_), reading);
      if (reading != DeviceClock::Reading::reached) break;
      ++unread_;
    }
  }
  if (reading == DeviceClock::Reading::failed) stop();
}

void DeviceSteps::read_one(Entry& entry, DeviceClock::Reading& reading) noexcept {
  if (entry.event == nullptr) return;
  DeviceMark& mark = entry.mark;
  reading = device_->read(entry.event, mark.device_ns);
  if (reading == DeviceClock::Reading::not_reached) return;
  entry.event = nullptr;
  if (reading == DeviceClock::Reading::failed) return;
  mark.timed = true;
  if (!offset_ns_) return;
  mark.lag_ns = mark.device_ns + *offset_ns_ - mark.host_ns;
  least_lag_ns_ = std::min(least_lag_ns_.value_or(*mark.lag_ns), *mark.lag_ns);
}

/// The oldest record, if it need not wait.
Slot* DeviceSteps::front() noexcept {
  if (waiting_ == 0) return nullptr;
  Waiting& waiting = waiting_slots_[first_waiting_];
  const bool waits = waiting.timed && unread_ <= waiting.last;
  return waits && !gives_up_ && waiting_ != most_waiting ? nullptr : &waiting.slot;
}

std::optional<DeviceTimes> DeviceSteps::times() noexcept {
  const Waiting& waiting = waiting_slots_[first_waiting_];
  if (!waiting.timed || unread_ <= waiting.last) return std::nullopt;
  const std::lock_guard lock{mutex_};
  scratch_.clear();
  for (std::uint64_t i = waiting.first; i <= waiting.last; ++i) scratch_.push_back(at(i).mark);
  return device_times(scratch_, least_lag_ns_.value_or(0));
}

void DeviceSteps::pop() noexcept {
  const std::lock_guard lock{mutex_};
  first_waiting_ = (first_waiting_ + 1) % most_waiting;
  --waiting_;
  free_marks();
}

/// Forgets the marks that no record needs.  The last one may begin the next record.
void DeviceSteps::free_marks() noexcept {
  std::uint64_t keep = end_ - std::min<std::uint64_t>(end_ - begin_, 1);
  if (recording_) keep = std::min(keep, first_);
  if (waiting_ != 0) keep = std::min(keep, waiting_slots_[first_waiting_].first);
  for (; begin_ < keep; ++begin_) {
    if (void* event = std::exchange(at(begin_).event, nullptr)) device_->release(event);
  }
  unread_ = std::max(unread_, begin_);
}

}  // namespace flopmeter
