// SPDX-License-Identifier: Apache-2.0
//
// DeviceProfile: operators with the times of their kernels on an asynchronous device.  An event
// follows the work of each operator; the time from one event of a stream to the next is that of the
// kernels between them.  Nothing waits for the device: events are read once it has reached all,
// some at a time.
#pragma once

#include "op_rows.h"
#include "op_spans.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace flopmeter::torch_adapter {

/// Functions may be called from any thread unless they state otherwise.
class DeviceProfile {
 public:
  DeviceProfile() = default;
  DeviceProfile(const DeviceProfile&) = delete;
  DeviceProfile& operator=(const DeviceProfile&) = delete;
  DeviceProfile(DeviceProfile&&) = delete;
  DeviceProfile& operator=(DeviceProfile&&) = delete;
  ~DeviceProfile();

  /// One call of an operator; returns its number.
  int add(RowKey key, const RowSum& cost);
  /// Device work of the current stream since the stream's last event belongs to the call, to no
  /// operator, or to the profiler itself.
  static constexpr int no_operator = -1;
  static constexpr int own_work = -2;
  void record(int call);
  /// The current stream waits for a collective until end_wait(): time between operators belongs to
  /// the wait.
  void begin_wait();
  void end_wait();

  /// Training thread, at the end: measures what an event itself takes.
  void calibrate();
  /// Training thread: reads some events if the device has reached all.  Returns whether no more are
  /// to be read.
  [[nodiscard]] bool read();
  /// Training thread, once all are read; adds the work of the operators to `spans`, with a lane for
  /// each stream.  Empty if there were too many events, or if the clocks of host and device could
  /// not be compared.
  [[nodiscard]] std::map<RowKey, RowSum> rows(OpSpans& spans);

 private:
  static constexpr std::size_t most_events = 32768;

  struct Event {
    void* event = nullptr;
    std::int64_t stream = 0;
    std::int64_t host_ns = 0;  ///< before it was recorded
    int call = no_operator;
    std::uint8_t phase = 0;
    std::int64_t device_ns = 0;  ///< since the event before on the stream
    std::int64_t lag_ns = 0;     ///< the device reached it this long after the host
  };

  void record_locked(int call);
  bool read_last();
  /// The one with most events.
  [[nodiscard]] std::int64_t main_stream() const;
  [[nodiscard]] std::int64_t event_cost(std::int64_t least_lag_ns) const;

  std::mutex mutex_;
  std::vector<std::pair<RowKey, RowSum>> calls_;
  std::vector<Event> events_;
  std::map<std::int64_t, std::size_t> last_;  ///< event of each stream
  int wait_ = no_operator;                    ///< call of the wait
  bool overflow_ = false;
  std::optional<std::size_t> unread_;  ///< events; empty until the device has reached all
  /// The event of each stream that was read last, and when by the host's clock it was reached.
  std::map<std::int64_t, std::pair<std::size_t, std::int64_t>> later_;
  int anchor_tries_ = 0;
};

}  // namespace flopmeter::torch_adapter
