// SPDX-License-Identifier: Apache-2.0
//
// DeviceClock: when an asynchronous device reaches a point of its work.  The host only enqueues the
// work of such a device, so host clocks do not measure it.
#pragma once

#include <cstdint>

namespace flopmeter {

/// Events that an adapter reports while a device trains, numbered as FlopmeterDeviceEvent.
enum class DeviceEvent : std::uint8_t {
  synchronization_begin,  ///< the host is about to wait for the device
  synchronization_end,
  copy_begin,  ///< between host and device
  copy_end,
  blocking_copy_end,      ///< of a copy that the host waited for
  collective,             ///< one was enqueued on the device
  collective_wait_begin,  ///< the stream is about to wait for a collective
  collective_wait_end,
  backward_begin,
  graph_end,      ///< autograd has enqueued all gradients; reductions may follow
  backward_end,   ///< backward() is about to return
  backward_call,  ///< the program calls backward(); reported by the program, not by an adapter
};

/// Receives the events of all threads.
class DeviceListener {
 public:
  /// `bytes`: of a copy that begins.
  virtual void on(DeviceEvent event, std::int64_t bytes) noexcept = 0;

 protected:
  ~DeviceListener() = default;
};

/// Records events on the device and reads them later.  Nothing waits for the device.
class DeviceClock {
 public:
  enum class State : std::uint8_t {
    no_device,  ///< none is known yet
    ready,
    unsupported,  ///< the device or the framework does not time events
  };
  struct Recorded {
    void* event = nullptr;    ///< null: none was recorded, for example while a graph is captured
    std::int64_t stream = 0;  ///< on which it was recorded
  };
  enum class Reading : std::uint8_t { not_reached, reached, failed };
  struct Anchor {
    std::int64_t host_ns = 0;  ///< of the monotonic clock
    std::int64_t device_ns = 0;
  };

  DeviceClock() = default;
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;
  DeviceClock(DeviceClock&&) = delete;
  DeviceClock& operator=(DeviceClock&&) = delete;
  virtual ~DeviceClock() = default;

  /// Training thread: opens the clock once the device is known.
  virtual State open() noexcept = 0;
  /// Any thread: records an event on the thread's current stream.
  virtual Recorded record() noexcept = 0;
  /// Training thread, in the order of the records: when the device reached the event, in
  /// nanoseconds of the device's clock.  An event that was reached is released.
  virtual Reading read(void* event, std::int64_t& device_ns) noexcept = 0;
  /// Any thread: the event is not read.
  virtual void release(void* event) noexcept = 0;
  /// Training thread: reads both clocks at one moment.  False if that takes too long.
  virtual bool anchor(Anchor& anchor) noexcept = 0;
  /// Training thread: keeps the current stream busy for about this long before later work.  False
  /// if the framework cannot do that.
  virtual bool delay(double /*seconds*/) noexcept { return false; }
  /// Replaces the listener, which receives the events.
  virtual void listen(DeviceListener& listener) noexcept = 0;
  /// Returns after the last call of the listener has ended.
  virtual void stop_listening(DeviceListener& listener) noexcept = 0;
};

}  // namespace flopmeter
