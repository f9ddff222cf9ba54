// SPDX-License-Identifier: Apache-2.0
//
// Monitor::Session: everything that a running monitor owns.  The training thread uses the tracker
// and the recorder, the writer thread uses the writer.  The writer thread also holds the session,
// so that a write that never returns does not delay the exit of the process.
#pragma once

#include "fork_guard.h"
#include "record_writer.h"
#include "ring.h"
#include "step_recorder.h"
#include "step_tracker.h"

#include <flopmeter/monitor/monitor.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace flopmeter {

class Monitor::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Options options, Connections connections);

  /// Prepares the directory and the sinks, and starts the writer thread.
  Result<void> start();
  void finish() noexcept;
  /// Writes finished records now.
  void flush() {
    {
      const std::lock_guard lock{mutex_};
      flush_requested_ = true;
    }
    wake_.notify_all();
  }

  [[nodiscard]] bool alive() const noexcept {
    return alive_.load(std::memory_order_relaxed) && generation_ == fork_generation();
  }
  [[nodiscard]] StepRecorder& recorder() noexcept { return recorder_; }
  [[nodiscard]] StepTracker& tracker() noexcept { return tracker_; }
  [[nodiscard]] bool is_child() const noexcept { return generation_ != fork_generation(); }
  [[nodiscard]] MonitorStatus status() const;
  std::shared_ptr<Subscription> subscribe(std::size_t capacity);
  void add_finding(Finding finding);

 private:
  void run() noexcept;
  /// Passes a record to the subscribers.
  void publish(const StepRecord& record);
  /// Keeps a message for status() and shows it.
  void note(std::string_view text) noexcept;
  /// Whether the thread must wake up early; call with the lock.
  bool must_wake() { return std::exchange(flush_requested_, false) || stopping_; }

  Options options_;
  Connections connections_;
  std::string_view convention_;
  Ring<Slot> ring_;
  StepRecorder recorder_;
  StepTracker tracker_;
  RecordWriter writer_;
  std::uint64_t generation_;
  bool no_thread_ = false;  ///< the system refused one: nothing is monitored
  std::atomic<bool> alive_{false};

  mutable std::mutex
      mutex_;  ///< guards the members below; the training thread never takes it in a step
  std::condition_variable wake_;
  std::condition_variable done_;
  bool flush_requested_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  std::vector<std::shared_ptr<Subscription>> subscriptions_;
  std::atomic<bool> subscribed_{false};  ///< a subscriber waits for each record
  std::vector<Finding> findings_;
  std::vector<std::string> notes_;

  std::thread thread_;
};

}  // namespace flopmeter
