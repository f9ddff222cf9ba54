// SPDX-License-Identifier: Apache-2.0
#include "device_steps.h"

#include "fork_guard.h"

#include <algorithm>
#include <utility>

namespace flopmeter {

using Kind = DeviceMark::Kind;

DeviceSteps::DeviceSteps(DeviceClock* device, const Clock& clock, double budget)
    : device_(device), clock_(clock), budget_(budget), generation_(fork_generation()) {}

DeviceSteps::~DeviceSteps() {
  // A child of a fork must not touch the device.
  if (device_ != nullptr && generation_ == fork_generation()) device_->stop_listening(*this);
}

/// The device is known once the model has run on it; memory is allocated only then.
void DeviceSteps::open() noexcept try {
  if (!enabled_ || state_ != DeviceClock::State::no_device) return;
  if (generation_ != fork_generation()) return;
  const DeviceClock::State state = device_->open();
  if (state == DeviceClock::State::ready) {
    marks_.resize(most_marks);
    waiting_slots_.resize(most_waiting);
    scratch_.reserve(most_marks);
    device_->listen(*this);
  }
  state_ = state;
} catch (...) {
  state_ = DeviceClock::State::unsupported;  // no memory
}

/// An event could not be read: no device time for the rest of the run.
void DeviceSteps::stop() noexcept {
  device_->stop_listening(*this);
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
  const std::int64_t cost = clock_.monotonic() - now;
  if (timed) {
    ++recorded_;
    costs_[next_cost_++ % costs_.size()] = cost;
  }
  in_last_call_ = true;
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
  recorded_ = 0;
  events_ = 0;
  has_unmarked_waits_ = false;
  delay_ = delayed_ = 0;
  recording_ = true;
  has_collectives_ = false;
  fetched_ = other_stream_waits_ = awaits_backward_ = false;
  forwards_ = backwards_ = 0;
  if (continues && last_end_) {
    first_ = *last_end_;
    complete_ = true;
  } else {
    complete_ = add(Kind::phase, Phase::other, true);
    first_ = complete_ ? end_ - 1 : end_;
  }
}

void DeviceSteps::end() noexcept {
  mark_phase(Phase::other, true);
}

void DeviceSteps::mark_phase(Phase phase, bool ends) noexcept {
  if (!recording_) return;
  const std::lock_guard lock{mutex_};
  if (!complete_ || (only_boundaries_ && !ends)) return;
  // The loss may be computed after the model: forward lasts until backward() is called.
  if (std::exchange(awaits_backward_, false)) reports_backward_ = false;
  awaits_backward_ =
      reports_backward_ && phase_ == Phase::forward && phase == Phase::backward && !ends;
  if (awaits_backward_) {
    phase_ = phase;
    return;
  }
  DeviceMark& last = at(end_ - 1).mark;
  const bool is_begin = end_ - 1 == first_;  // a record does not end at its first mark
  const bool saved = can_save_mark(phase) && !ends;
  if (last.kind == Kind::phase && !(ends && is_begin) && in_last_call_) {
    last.phase = phase;
  } else {
    complete_ = add(saved ? Kind::unrecorded_phase : Kind::phase, phase, !saved);
  }
}

/// The first micro-batch of a record has a mark where its forward pass begins.  Another one begins
/// where its data or the copies of its data end, which have marks: device work in between counts as
/// forward.  If the end of backward is not reported, backward ends there, too.
bool DeviceSteps::can_save_mark(Phase phase) noexcept {
  const Phase before = std::exchange(phase_, phase);
  if (before == Phase::data) fetched_ = true;
  if (phase == Phase::other) return before == Phase::backward && fetched_ && forwards_ > 0;
  if (phase != Phase::forward) return false;
  const bool is_first = forwards_++ == 0;
  return std::exchange(fetched_, false) && !is_first;
}

/// The program, or a hook on the output of the model, reports that a backward pass begins.
bool DeviceSteps::begin_backward() noexcept {
  reports_backward_ = true;
  if (!std::exchange(awaits_backward_, false)) return true;
  complete_ = add(Kind::phase, Phase::backward, true);
  in_last_call_ = false;
  return complete_;
}

/// Without the lock: the framework may wait for a thread that reports an event.
void DeviceSteps::fill_queue() noexcept {
  const double seconds = std::exchange(delay_, 0);
  if (generation_ != fork_generation() || !complete_ || at(end_ - 1).event == nullptr) return;
  if (device_->delay(seconds)) delayed_ = seconds;
}

void DeviceSteps::discard() noexcept {
  if (state_ != DeviceClock::State::ready) return;
  const std::lock_guard lock{mutex_};
  recording_ = false;
  // The time belongs to the next record, which begins where the last one ended.
  while (last_end_ && end_ > *last_end_ + 1) {
    if (void* event = std::exchange(at(--end_).event, nullptr)) device_->release(event);
  }
  unread_ = std::min(unread_, end_);
}

void DeviceSteps::on(DeviceEvent event, std::int64_t bytes) noexcept {
  if (generation_ != fork_generation()) return;
  const std::lock_guard lock{mutex_};
  if (!recording_ || !complete_ || only_boundaries_) return;
  if (event == DeviceEvent::collective_wait_end && std::exchange(other_stream_waits_, false))
    return;
  bool timed = true;
  switch (event) {
    case DeviceEvent::backward_call:
      begin_backward();
      return;
    case DeviceEvent::backward_begin:
      if (!begin_backward()) return;
      has_collectives_ = timed = false;
      ++backwards_;
      break;
    case DeviceEvent::collective:
      if (std::exchange(has_collectives_, true)) return;
      timed = false;
      break;
    case DeviceEvent::graph_end:
      if (!has_collectives_) return;
      break;
    case DeviceEvent::backward_end:
      // Before the last micro-batch, backward lasts until the next one begins.
      if (!has_collectives_ && backwards_ < expected_backwards_) return;
      break;
    case DeviceEvent::synchronization_end:
      timed = false;
      [[fallthrough]];
    default:
      if (++events_ <= most_events) break;
      has_unmarked_waits_ = has_unmarked_waits_ || event == DeviceEvent::collective_wait_end;
      return;
  }
  complete_ = add(static_cast<Kind>(static_cast<int>(event) + 1), {}, timed);
  in_last_call_ = false;
  if (!complete_) return;
  at(end_ - 1).mark.bytes = bytes;
  if (event == DeviceEvent::collective_wait_begin) drop_wait_of_other_stream();
}

/// Another stream waits, as in FSDP; the step does not.
void DeviceSteps::drop_wait_of_other_stream() noexcept {
  Entry& entry = at(end_ - 1);
  if (entry.event == nullptr || entry.mark.stream == at(first_).mark.stream) return;
  device_->release(std::exchange(entry.event, nullptr));
  --end_;
  --events_;
  other_stream_waits_ = true;
}

DeviceSteps::Fate DeviceSteps::take(const Slot& slot, bool timed) noexcept {
  open();  // the record may be the one in which the device became known
  if (state_ == DeviceClock::State::no_device) return Fate::host;
  const std::lock_guard lock{mutex_};
  last_end_.reset();
  if (recording_ && complete_) last_end_ = end_ - 1;
  timed = timed && recording_ && complete_;
  recording_ = false;
  if (backwards_ > 0) expected_backwards_ = backwards_;
  if (waiting_ == most_waiting) return Fate::untimed;
  if (!timed && waiting_ == 0) return Fate::untimed;
  Waiting& waiting = waiting_slots_[(first_waiting_ + waiting_) % most_waiting];
  ++waiting_;
  waiting.slot = slot;
  waiting.first = timed ? first_ : end_;
  waiting.last = end_ - 1;
  waiting.timed = timed;
  waiting.only_boundaries = only_boundaries_;
  waiting.has_unmarked_waits = has_unmarked_waits_;
  waiting.events = recorded_;
  return Fate::deferred;
}

/// The shortest of the last events: a full launch queue, or preemption of the host, prolongs some
/// of them.
std::int64_t DeviceSteps::event_cost() const noexcept {
  const std::size_t known = std::min(next_cost_, costs_.size());
  return known > 0 ? *std::min_element(costs_.begin(), std::next(costs_.begin(), known)) : 0;
}

std::int64_t DeviceSteps::cost_ns() noexcept {
  if (!is_ready()) return 0;  // a step on a synchronous device takes no lock
  const std::lock_guard lock{mutex_};
  return recorded_ * event_cost();
}

/// Records fewer marks, then none, if they cost too much.  A host that runs ahead of the device
/// takes less time than a step.
void DeviceSteps::keep_budget(const std::optional<DeviceTimes>& times) noexcept {
  const Waiting& waiting = waiting_slots_[first_waiting_];
  if (waiting.only_boundaries != only_boundaries_)
    return;  // recorded before the marks were reduced
  const std::int64_t host_ns = waiting.slot.end_ns - waiting.slot.start_ns;
  const auto device_ns = static_cast<std::int64_t>(times ? times->step.value * 1e9 : 0);
  total_events_ += waiting.events;
  total_ns_ += std::max(host_ns, device_ns);
  if (++records_ < cost_records) return;
  std::int64_t event_ns = 0;
  {
    const std::lock_guard lock{mutex_};
    event_ns = event_cost();
  }
  const double cost_ns = static_cast<double>(total_events_) * static_cast<double>(event_ns);
  const bool over = cost_ns > budget_ * static_cast<double>(total_ns_);
  if (over && only_boundaries_) stop();
  only_boundaries_ = only_boundaries_ || over;
  total_events_ = total_ns_ = records_ = 0;
}

/// Measures the offset between the clocks of host and device.
void DeviceSteps::anchor() noexcept {
  const std::int64_t now = clock_.monotonic();
  if (now < next_anchor_ns_) return;
  DeviceClock::Anchor anchor;
  const bool found = device_->anchor(anchor);
  next_anchor_ns_ = now + (found ? anchor_interval_ns : next_try_ns);
  if (!found) return;
  if (!offset_ns_) least_lag_ns_.reset();
  offset_ns_ = anchor.host_ns - anchor.device_ns;
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
  // Without an anchor, the shortest lag of any mark is taken as that of an empty queue: lags are
  // then too short, but upper bounds of the idle time stay valid.
  const std::int64_t difference = mark.device_ns - mark.host_ns;
  if (!offset_ns_) least_offset_ns_ = std::min(least_offset_ns_.value_or(difference), difference);
  mark.lag_ns = difference + (offset_ns_ ? *offset_ns_ : -*least_offset_ns_);
  least_lag_ns_ = std::min(least_lag_ns_.value_or(*mark.lag_ns), *mark.lag_ns);
}

/// The oldest record, unless it waits for the device.
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
  auto times = device_times(scratch_, least_lag_ns_.value_or(0), copy_times_);
  if (times && waiting.has_unmarked_waits) {
    times->phases.reset();
    times->exposed_communication.reset();
  }
  if (times && waiting.only_boundaries) times = DeviceTimes{.step = times->step, .lag = times->lag};
  return times;
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
  if (last_end_) keep = std::min(keep, *last_end_);
  if (waiting_ != 0) keep = std::min(keep, waiting_slots_[first_waiting_].first);
  for (; begin_ < keep; ++begin_) {
    if (void* event = std::exchange(at(begin_).event, nullptr)) device_->release(event);
  }
  unread_ = std::max(unread_, begin_);
}

}  // namespace flopmeter
