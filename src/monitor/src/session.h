// SPDX-License-Identifier: Apache-2.0
//
// Monitor::Session: everything that a running monitor owns.  The training thread uses the recorder;
// the writer thread owns the rest.  That thread also holds the session, so that a write that never
// returns does not delay the exit of the process.
#pragma once

#include "broadcast.h"
#include "flop_resolver.h"
#include "fork_guard.h"
#include "hardware.h"
#include "live_diagnosis.h"
#include "process_sampler.h"
#include "ring.h"
#include "run_statistics.h"
#include "sink_driver.h"
#include "step_recorder.h"
#include "step_tracker.h"

#include <flopmeter/core/utilization.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/runstore/profile_stream.h>

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
  Result<void> make_sinks();
  void prepare_run();
  void run() noexcept;
  void drain(std::int64_t now_ns);
  void handle(Slot& slot, std::int64_t now_ns);
  void store_profile();
  void report_findings(std::int64_t now_ns);
  void warn_about_missing_peak(const StepRecord& record);
  void warn_about_dropped_records();
  void restore_directory();
  /// Keeps a message for status() and shows it.
  void note(std::string_view text) noexcept;
  /// Whether the thread must wake up early; call with the lock.
  bool must_wake() { return std::exchange(flush_requested_, false) || stopping_; }

  Options options_;
  Connections connections_;
  RunContext run_;
  std::string_view convention_;
  Ring<Slot> ring_;
  StepRecorder recorder_;
  StepTracker tracker_;
  std::uint64_t generation_;
  bool no_thread_ = false;  ///< the system refused one: nothing is monitored
  std::atomic<bool> alive_{false};
  std::atomic<bool> left_alone_{false};  ///< finish() gave up waiting for the writer thread

  // Used by the writer thread.
  Utilization utilization_;
  FlopResolver resolver_;
  Broadcast broadcast_;
  Hardware hardware_;
  std::optional<RunStatistics> statistics_;
  LiveDiagnosis diagnosis_;
  SinkDriver sinks_;
  ProcessSampler sampler_;
  std::optional<ProfileWriter> profiles_;
  std::int64_t started_ns_ = 0;
  std::int64_t drained_ns_ = 0;
  std::int64_t cpu_ns_ = 0;
  bool has_metadata_ = false;  ///< run.json was written
  bool warned_peak_ = false;
  bool warned_dropped_ = false;

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

  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failed_writes_{0};
  std::thread thread_;
};

}  // namespace flopmeter
