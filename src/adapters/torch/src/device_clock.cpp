// SPDX-License-Identifier: Apache-2.0
#include "device_clock.h"

#include "device_waits.h"

#include <c10/core/TensorImpl.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace flopmeter::torch_adapter {
namespace {

std::atomic<std::int64_t> training_device{-1};  ///< type and index; -1: not known
std::atomic<bool> is_open{false};
std::atomic<int> captures_under_way{0};
std::atomic<bool> captures_are_reported{false};
std::atomic<bool> guard_knows_captures{true};

}  // namespace

void set_training_device(c10::Device device) {
  std::int64_t none = -1;
  const auto index = static_cast<std::uint8_t>(device.has_index() ? device.index() : 0);
  training_device.compare_exchange_strong(
      none, static_cast<std::int64_t>(device.type()) << 8U | index, std::memory_order_relaxed);
}

void use_device_of(std::uintptr_t tensor) {
  const auto* impl =
      reinterpret_cast<c10::TensorImpl*>(tensor);  // NOLINT: Python passes an address
  if (impl->is_cpu() || impl->is_meta()) return;
  set_training_device(impl->device());
  open_device_clock();
}

bool is_training_device(c10::DeviceType type) {
  return static_cast<std::int64_t>(type) == training_device.load(std::memory_order_relaxed) >> 8U;
}

c10::Device known_training_device() {
  const std::int64_t known = training_device.load(std::memory_order_relaxed);
  return {static_cast<c10::DeviceType>(known >> 8U), static_cast<c10::DeviceIndex>(known & 0xff)};
}

bool device_clock_is_open() {
  return is_open.load(std::memory_order_relaxed);
}

void count_captures(int change) {
  captures_are_reported = true;
  captures_under_way.fetch_add(change);
}

// Events can be timed through the guard since torch 2.4.  While a stream is being captured, they
// must neither be recorded nor queried.  The guard states that since 2.12; before, the program must
// report its captures.
#if FLOPMETER_TORCH_VERSION >= 204
namespace {

using namespace std::chrono_literals;
using HostClock = std::chrono::steady_clock;

std::int64_t host_now() {
  return std::chrono::nanoseconds(HostClock::now().time_since_epoch()).count();
}

std::int64_t nanoseconds(double milliseconds) {
  return static_cast<std::int64_t>(milliseconds * 1e6);
}

bool is_capturing(const c10::impl::VirtualGuardImpl& guard, c10::Stream stream) {
  if (captures_under_way.load() > 0) return true;
#if FLOPMETER_TORCH_VERSION >= 212
  if (!guard_knows_captures.load(std::memory_order_relaxed)) return false;
  try {
    return guard.isStreamCapturing(stream);
  } catch (...) {  // a backend without captures
    guard_knows_captures = false;
    return false;
  }
#else
  static_cast<void>(guard);
  static_cast<void>(stream);
  return !captures_are_reported.load();
#endif
}

class EventClock {
 public:
  enum class Probe : std::uint8_t { works, fails, too_slow };

  explicit EventClock(c10::Device device)
      : device_(device), guard_(device.type()), stream_(guard_.getStream(device)) {
    change_stream();
  }

  Probe probe() {
    // The first event of a process may take long.
    reference_ = timed_event(100ms);
    for (int i = 0; i < new_stream_every && reference_ == nullptr && change_stream(); ++i)
      reference_ = timed_event(10ms);
    if (reference_ == nullptr) return Probe::too_slow;
    void* second = timed_event(100ms);
    if (second == nullptr) return Probe::too_slow;
    const bool works = guard_.elapsedTime(reference_, second, device_.index()) >= 0;
    free_.push_back(second);
    return works ? Probe::works : Probe::fails;
  }

  bool captures() const { return is_capturing(guard_, guard_.getStream(device_)); }

  void* record(std::int64_t& stream) {
    const c10::Stream current = guard_.getStream(device_);
    if (is_capturing(guard_, current)) return nullptr;
    void* event = take();
    guard_.record(&event, current, device_.index(), c10::EventFlag::BACKEND_DEFAULT);
    stream = current.id();
    return event;
  }

  /// Measured from the event that was read before: a vendor's time between two events is a float.
  bool read(void* event, std::int64_t& device_ns) {
    if (!guard_.queryEvent(event)) return false;
    reference_ns_ += between(reference_, event);
    device_ns = reference_ns_;
    release(reference_);
    reference_ = event;
    return true;
  }

  void release(void* event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

  [[nodiscard]] bool is_reached(void* event) const {
    return !captures() && guard_.queryEvent(event);
  }
  [[nodiscard]] std::int64_t between(void* from, void* to) const {
    return nanoseconds(guard_.elapsedTime(from, to, device_.index()));
  }

  bool anchor(std::int64_t& host_ns, std::int64_t& device_ns) {
    if (!read_both(reference_, host_ns, device_ns)) return false;
    device_ns += reference_ns_;
    return true;
  }

  /// Reads both clocks at one moment, the device's as the time since an event that it has reached:
  /// the best of a few readings.
  bool read_both(void* since, std::int64_t& host_ns, std::int64_t& device_ns) {
    constexpr int readings = 3;
    std::int64_t shortest = 50'000;
    bool found = false;
    if (captures()) return false;
    for (int i = 0; i < readings; ++i) {
      const std::int64_t begin = host_now();
      void* event = timed_event(100us);
      const std::int64_t end = host_now();
      if (event == nullptr) break;
      if (end - begin < shortest) {
        shortest = end - begin;
        host_ns = end;
        device_ns = between(since, event);
        found = true;
      }
      release(event);
    }
    if (!found) change_stream();
    return found;
  }

 private:
  static constexpr int new_stream_every = 4;
  static constexpr int most_changes = 16;

  /// Pool streams are shared, and others may work on all of them.  Not every backend has a pool, or
  /// more than one stream: on the current one, clocks are compared while it has no work.  False if
  /// there is no other stream.
  bool change_stream() {
    ++changes_;
    const bool is_new_first = changes_ % new_stream_every == 0;
    for (const bool is_new : {is_new_first, !is_new_first}) {
      if (is_new && changes_ > most_changes) continue;  // some backends never free a stream
      try {
        stream_ = is_new ? guard_.getNewStream(device_) : guard_.getStreamFromGlobalPool(device_);
        return true;
      } catch (...) {  // the backend has none
      }
    }
    return false;
  }

  void* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;  // the guard creates one
    void* event = free_.back();
    free_.pop_back();
    return event;
  }

  /// An event on a stream without work that the device has reached; null: not within the limit.
  void* timed_event(std::chrono::nanoseconds limit) {
    void* event = take();
    guard_.record(&event, stream_, device_.index(), c10::EventFlag::BACKEND_DEFAULT);
    const auto end = HostClock::now() + limit;
    while (!guard_.queryEvent(event)) {
      if (HostClock::now() < end) continue;
      release(event);
      return nullptr;
    }
    return event;
  }

  const c10::Device device_;
  const c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;  ///< on which the loop enqueues nothing
  int changes_ = 0;     ///< of the stream
  std::mutex mutex_;
  std::vector<void*> free_;
  void* reference_ = nullptr;  ///< the event that was read last
  std::int64_t reference_ns_ = 0;
};

/// Never freed: when the process ends, the device's runtime may be gone before us.
EventClock* clock_in_use = nullptr;
/// A device with a single stream that works for long answers a probe late.
int slow_probes = 0;
constexpr int most_slow_probes = 5;

/// MPS is excluded: there, reading the time between events may wait.
bool times_events(c10::DeviceType type) {
  return type != c10::DeviceType::CPU && type != c10::DeviceType::MPS &&
         type != c10::DeviceType::Meta && c10::impl::hasDeviceGuardImpl(type);
}

}  // namespace

int open_device_clock() {
  if (training_device.load(std::memory_order_relaxed) < 0) return 0;
  if (clock_in_use == nullptr) {
    const c10::Device device = known_training_device();
    if (!times_events(device.type())) return -1;
    const c10::impl::VirtualGuardImpl guard(device.type());
    if (is_capturing(guard, guard.getStream(device))) return 0;  // later
    auto clock = std::make_unique<EventClock>(device);
    const EventClock::Probe probe = clock->probe();
    if (probe == EventClock::Probe::too_slow && ++slow_probes < most_slow_probes)
      return 0;  // later
    if (probe != EventClock::Probe::works) return -1;
    intercept_waits();
    clock_in_use = clock.release();
    is_open = true;
  }
  return 1;
}

int record_device_event(void** event, std::int64_t* stream) try {
  *event = clock_in_use->record(*stream);
  return *event != nullptr ? 1 : 0;
} catch (...) {  // called in the middle of operators of the program
  *event = nullptr;
  return 0;
}

int read_device_event(void* event, std::int64_t* device_ns) {
  if (clock_in_use->captures()) return 0;
  return clock_in_use->read(event, *device_ns) ? 1 : 0;
}

void release_device_event(void* event) {
  clock_in_use->release(event);
}

int anchor_device_clock(std::int64_t* host_ns, std::int64_t* device_ns) {
  return clock_in_use->anchor(*host_ns, *device_ns) ? 1 : 0;
}

bool device_is_captured() {
  return clock_in_use->captures();
}

bool is_device_event_reached(void* event) {
  return clock_in_use->is_reached(event);
}

std::int64_t device_time_between(void* from, void* to) {
  return clock_in_use->between(from, to);
}

std::optional<std::int64_t> host_time_of(void* event) {
  std::int64_t host_ns = 0;
  std::int64_t since = 0;
  if (!clock_in_use->read_both(event, host_ns, since)) return std::nullopt;
  return host_ns - since;
}

#else

int open_device_clock() {
  return training_device.load(std::memory_order_relaxed) < 0 ? 0 : -1;
}
int record_device_event(void** /*event*/, std::int64_t* /*stream*/) {
  return 0;
}
int read_device_event(void* /*event*/, std::int64_t* /*device_ns*/) {
  return -1;
}
void release_device_event(void* /*event*/) {}
int anchor_device_clock(std::int64_t* /*host_ns*/, std::int64_t* /*device_ns*/) {
  return 0;
}
bool device_is_captured() {
  return false;
}
bool is_device_event_reached(void* /*event*/) {
  return false;
}
std::int64_t device_time_between(void* /*from*/, void* /*to*/) {
  return 0;
}
std::optional<std::int64_t> host_time_of(void* /*event*/) {
  return std::nullopt;
}

#endif

}  // namespace flopmeter::torch_adapter
