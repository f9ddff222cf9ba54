// SPDX-License-Identifier: Apache-2.0
//
// DeviceSteps: marks of the device and the records that wait for them.  The host is ahead of the
// device: a record is complete when the device has reached the record's last mark.  Marks are read
// at the end of a record, oldest first; nothing waits for the device.
#pragma once

#include "device_times.h"
#include "slot.h"

#include <flopmeter/core/device_clock.h>
#include <flopmeter/telemetry/clock.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace flopmeter {

/// Used by the training thread; on() by any thread.
class DeviceSteps final : public DeviceListener {
 public:
  /// `device` may be null: then no device is used.
  /// `budget`: the share of the time that marks may take.
  DeviceSteps(DeviceClock* device, const Clock& clock, double budget);
  DeviceSteps(const DeviceSteps&) = delete;
  DeviceSteps& operator=(const DeviceSteps&) = delete;
  DeviceSteps(DeviceSteps&&) = delete;
  DeviceSteps& operator=(DeviceSteps&&) = delete;
  ~DeviceSteps();

  /// Marks are recorded on a device.
  [[nodiscard]] bool is_ready() const noexcept { return state_ == DeviceClock::State::ready; }

  /// The program calls the monitor: work may have been enqueued since the last call.
  void new_call() noexcept { in_last_call_ = false; }
  /// From now on marks are recorded once the device is known.
  void enable() noexcept { enabled_ = device_ != nullptr; }

  /// A record begins.  `continues`: where the last record ended.
  void start(bool continues) noexcept;
  /// Time after this belongs to `phase`.
  void switch_phase(Phase phase) noexcept {
    mark_phase(phase, false);
    if (phase == Phase::forward && delay_ > 0) fill_queue();
  }
  /// The forward pass of the open record begins with a delay of the device, so that the host can
  /// enqueue that much time of work before the device waits for it.
  void delay_forward(double seconds) noexcept { delay_ = recording_ ? seconds : 0; }
  /// Seconds of delay in the open record.
  [[nodiscard]] double delayed() const noexcept { return delayed_; }
  /// The open record ends here.
  void end() noexcept;
  /// Discards the open record.
  void discard() noexcept;
  void on(DeviceEvent event, std::int64_t bytes) noexcept override;

  enum class Fate : std::uint8_t {
    host,      ///< no device is used: host times are right
    deferred,  ///< the record was copied; poll() publishes it
    untimed,   ///< a device is used, and there is no device time of this record
  };
  /// Takes the record that ended.  `timed`: its times are the device's; else it waits only for its
  /// turn.
  Fate take(const Slot& slot, bool timed) noexcept;

  /// Passes records to `publish(Slot&, const std::optional<DeviceTimes>&)` in their order, as far
  /// as the device has come.
  template <class Publish>
  void poll(Publish&& publish) noexcept {
    if (waiting_ == 0) return;
    read();
    while (Slot* slot = front()) {
      const auto found = times();
      publish(*slot, found);
      keep_budget(found);
      pop();
    }
  }
  /// Records wait for the device.
  [[nodiscard]] bool waiting() const noexcept { return waiting_ != 0; }
  /// From now on records do not wait: a mark that is not reached has no time.
  void give_up() noexcept { gives_up_ = true; }

  /// Host time that the marks of the open record took.
  [[nodiscard]] std::int64_t cost_ns() noexcept;

 private:
  /// A step of a few launches, such as one that replays a graph, may be enqueued long before it
  /// runs.
  static constexpr std::uint64_t most_marks = 4096;
  static constexpr std::size_t most_waiting = 256;
  /// Copies, synchronizations, and waits of one record: a checkpoint may copy a thousand tensors.
  static constexpr int most_events = 64;
  static constexpr std::int64_t anchor_interval_ns = 1'000'000'000;
  static constexpr std::int64_t next_try_ns = 50'000'000;  ///< after an anchor that took too long
  /// Records over which the cost of marks is compared with the budget.
  static constexpr int cost_records = 8;

  struct Entry {
    DeviceMark mark;
    void* event = nullptr;  ///< not read yet
  };
  struct Waiting {
    Slot slot;
    std::uint64_t first = 0;  ///< numbers of its marks
    std::uint64_t last = 0;
    bool timed = true;
    bool only_boundaries = false;
    bool has_unmarked_waits = false;
    int events = 0;
  };

  Entry& at(std::uint64_t number) noexcept { return marks_[number % most_marks]; }
  void open() noexcept;
  void stop() noexcept;
  void mark_phase(Phase phase, bool ends) noexcept;
  void fill_queue() noexcept;
  [[nodiscard]] bool can_save_mark(Phase phase) noexcept;
  void drop_wait_of_other_stream() noexcept;
  void keep_budget(const std::optional<DeviceTimes>& times) noexcept;
  [[nodiscard]] std::int64_t event_cost() const noexcept;
  bool begin_backward() noexcept;
  bool add(DeviceMark::Kind kind, Phase phase, bool timed) noexcept;
  void read() noexcept;
  void read_one(Entry& entry, DeviceClock::Reading& reading) noexcept;
  void anchor() noexcept;
  void free_marks() noexcept;
  Slot* front() noexcept;
  std::optional<DeviceTimes> times() noexcept;
  void pop() noexcept;

  DeviceClock* const device_;
  const Clock clock_;
  const double budget_;  ///< share of the time that marks may take
  bool enabled_ = false;
  const std::uint64_t generation_;  ///< of forks
  DeviceClock::State state_ = DeviceClock::State::no_device;

  std::mutex mutex_;  ///< guards the marks and the open record
  std::vector<Entry> marks_;
  std::uint64_t begin_ = 0;   ///< oldest mark that is kept
  std::uint64_t unread_ = 0;  ///< oldest mark that is not read
  std::uint64_t end_ = 0;
  std::uint64_t first_ = 0;                ///< of the open record
  std::optional<std::uint64_t> last_end_;  ///< mark at which the last record ended
  bool recording_ = false;                 ///< a record is open
  bool complete_ = false;                  ///< and all of its marks found room
  int events_ = 0;                         ///< of the open record
  bool has_unmarked_waits_ = false;        ///< for collectives: there were too many
  bool only_boundaries_ = false;           ///< marks of phases and events are over budget
  int recorded_ = 0;                       ///< events of the open record
  std::array<std::int64_t, 64> costs_{};   ///< of the last events
  std::size_t next_cost_ = 0;
  std::int64_t total_events_ = 0;  ///< of the records since the budget was checked
  std::int64_t total_ns_ = 0;
  int records_ = 0;
  double delay_ = 0;  ///< that the forward pass will begin with
  double delayed_ = 0;
  bool in_last_call_ = false;        ///< the last mark was recorded in this call
  bool has_collectives_ = false;     ///< since the open record or the last backward pass began
  bool other_stream_waits_ = false;  ///< for a collective
  Phase phase_ = Phase::other;       ///< of the last mark of a phase
  bool fetched_ = false;             ///< since the last forward pass began
  int forwards_ = 0;                 ///< passes of the open record
  int backwards_ = 0;
  int expected_backwards_ = 1;     ///< as many as the last record with one had
  bool reports_backward_ = false;  ///< the last pass was reported when it began
  bool awaits_backward_ = false;   ///< the mark where it begins follows

  std::vector<Waiting> waiting_slots_;
  std::size_t first_waiting_ = 0;
  std::size_t waiting_ = 0;
  bool gives_up_ = false;
  std::vector<DeviceMark> scratch_;
  CopyTimes copy_times_;

  std::optional<std::int64_t> offset_ns_;  ///< host clock minus device clock
  std::int64_t next_anchor_ns_ = 0;
  std::optional<std::int64_t> least_offset_ns_;  ///< of any mark, while no anchor is known
  std::optional<std::int64_t> least_lag_ns_;
};

}  // namespace flopmeter
