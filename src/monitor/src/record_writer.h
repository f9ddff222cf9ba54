// SPDX-License-Identifier: Apache-2.0
//
// RecordWriter: completes the records of finished steps and writes them, with the profiles and
// findings of the run.
#pragma once

#include "broadcast.h"
#include "flop_resolver.h"
#include "hardware.h"
#include "live_diagnosis.h"
#include "process_sampler.h"
#include "ring.h"
#include "run_statistics.h"
#include "sink_driver.h"
#include "step_recorder.h"

#include <flopmeter/core/utilization.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/runstore/profile_stream.h>

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

namespace flopmeter {

/// Used by the writer thread, except for the members marked otherwise.
class RecordWriter {
 public:
  using Note = std::function<void(const std::string&)>;
  using Publish = std::function<void(const StepRecord&)>;

  /// `publish` gets each complete record, `note` gets messages.  Everything passed by reference
  /// must outlive the writer.
  RecordWriter(const Options& options,
               Connections& connections,
               StepRecorder& recorder,
               Ring<Slot>& ring,
               Note note,
               Publish publish);

  /// Training thread, before the first step: starts the run directory and opens the sinks.
  Result<void> open(std::string_view convention);
  /// Training thread, after open(): opens hardware counters and starts sampling.
  void open_hardware();

  /// More records wait than the writer handles in time.
  [[nodiscard]] bool is_busy() const { return ring_.size() > ring_.capacity() / 8; }
  /// One turn: samples, and writes waiting records if there are many, `now_wanted`, or if the last
  /// write was some time ago.
  void work(std::int64_t now_ns, bool now_wanted) noexcept;
  /// Writes the rest; `findings` are those of the program.  Nothing after abandon().
  void finish(std::vector<Finding> findings) noexcept;

  /// Any thread: no further record is written.
  void abandon() noexcept { abandoned_ = true; }
  [[nodiscard]] bool is_abandoned() const noexcept { return abandoned_; }
  /// Any thread: does not wait longer for a late rank.
  void stop_waiting() { broadcast_.stop(); }

  /// Any thread, after open().
  [[nodiscard]] const RunContext& run() const { return run_; }
  /// Any thread.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  /// Any thread.
  [[nodiscard]] std::uint64_t failed_writes() const noexcept { return failed_writes_; }

 private:
  void drain(std::int64_t now_ns);
  void handle(Slot& slot, std::int64_t now_ns);
  void store_profile();
  void warn_about_missing_peak(const StepRecord& record);
  void warn_about_dropped_records();
  void restore_directory();

  const Options& options_;
  Connections& connections_;
  StepRecorder& recorder_;
  Ring<Slot>& ring_;
  Note note_;
  Publish publish_;
  RunContext run_;
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
  std::int64_t flushed_ns_ = 0;
  std::int64_t cpu_ns_ = 0;
  bool has_metadata_ = false;  ///< run.json was written
  bool warned_peak_ = false;
  bool warned_dropped_ = false;
  std::atomic<bool> abandoned_{false};
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failed_writes_{0};
};

}  // namespace flopmeter
