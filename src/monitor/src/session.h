// SPDX-License-Identifier: Apache-2.0
//
// Monitor::Session: everything a running monitor owns.  The training thread uses the recorder; one
// background thread owns the rest.  The thread holds the session too, so that a write that never
// returns delays nobody's exit.
#pragma once

#include "broadcast.h"
#include "flop_resolver.h"
#include "fork_guard.h"
#include "hardware.h"
#include "live_diagnosis.h"
#include "ring.h"
#include "run_directory.h"
#include "run_statistics.h"
#include "sink_driver.h"
#include "step_recorder.h"
#include "step_tracker.h"

#include <flopmeter/core/utilization.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/telemetry/process_memory.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace flopmeter {

class Monitor::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Options options, Connections connections);

  /// Prepares the directory and the sinks, and starts the thread.
  Result<void> start();
  void finish() noexcept;
  /// What has finished is handled now, not within the thread's rest.
  void flush() {
    {
      const std::lock_guard lock{mutex_};
      hurried_ = true;
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
  Result<void> make_sinks();
  void prepare_directory();
  void run() noexcept;
  void drain(std::int64_t now_ns);
  void handle(Slot& slot, std::int64_t now_ns);
  void measure_memory(StepRecord& record, std::int64_t now_ns);
  void look_at_loader();
  void take_profile();
  void say_findings(std::int64_t now_ns);
  void note(std::string_view text) noexcept;
  /// Whether the thread is wanted before its rest is over; under the lock.
  bool is_called() { return std::exchange(hurried_, false) || stopping_; }

  Options options_;
  Connections connections_;
  RunInfo run_;
  std::string_view convention_;
  Ring<Slot> ring_;
  StepRecorder recorder_;
  StepTracker tracker_;
  std::uint64_t generation_;
  bool no_thread_ = false;  ///< the system refused one: nothing is watched
  std::atomic<bool> alive_{false};
  std::atomic<bool> left_alone_{false};  ///< finish() gave up waiting for the writing thread

  // Of the writing thread.
  Utilization builder_;
  FlopResolver resolver_;
  Broadcast broadcast_;
  Hardware hardware_;
  std::optional<RunStatistics> statistics_;
  LiveDiagnosis diagnosis_;
  SinkDriver sinks_;
  ProcessMemory memory_;
  std::int64_t memory_read_ns_ = 0;
  std::int64_t drained_ns_ = 0;
  std::int64_t cpu_ns_ = 0;
  pid_t training_thread_ = 0;
  std::int64_t data_wait_samples_ = 0;
  std::int64_t data_wait_busy_samples_ = 0;
  std::int64_t profile_bytes_ = 0;
  bool warned_peak_ = false;
  std::string batch_;  ///< text of the step being written

  mutable std::mutex
      mutex_;  ///< guards what follows; never taken by the training thread inside a step
  std::condition_variable wake_;
  std::condition_variable done_;
  bool hurried_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  std::vector<std::shared_ptr<Subscription>> subscriptions_;
  std::atomic<bool> subscribed_{false};  ///< somebody waits for each record
  std::vector<Finding> findings_;
  std::vector<std::string> notes_;

  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failed_writes_{0};
  std::thread thread_;
};

}  // namespace flopmeter
