// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/telemetry/host_load.h>
#include <flopmeter/telemetry/process_memory.h>

#include <sys/types.h>

#include <cstdint>

namespace flopmeter {

/// Samples memory, data loading, and other load of the machine from the writer thread.
class ProcessSampler {
 public:
  ProcessSampler(bool memory, std::function<DeviceMemory()> device_memory)
      : with_memory_(memory), device_memory_(std::move(device_memory)) {}

  /// Call on the training thread.
  void start(std::int64_t now_ns);
  /// While the training thread waits for data: whether the process or a loader worker runs.
  void sample_data_wait();
  /// Whether the training thread waits for Python's interpreter lock; a sample represents the time
  /// since the previous one.
  void sample_interpreter_lock(std::int64_t now_ns);
  /// Adds the samples and the waits since the last record, and the memory in use.
  void fill(StepRecord& record, std::int64_t now_ns);

 private:
  void fill_waits(StepRecord& record, std::int64_t now_ns);
  static void exclude_preparation(StepRecord& record, std::int64_t elapsed_ns);

  bool with_memory_;
  std::function<DeviceMemory()> device_memory_;
  ProcessMemory memory_;
  std::int64_t memory_read_ns_ = 0;
  pid_t training_thread_ = 0;
  std::optional<HostLoad> host_load_;
  std::int64_t data_wait_samples_ = 0;
  std::int64_t data_wait_busy_samples_ = 0;
  std::int64_t lock_sampled_ns_ = 0;
  std::int64_t lock_wait_ns_ = 0;
  std::optional<std::int64_t> waiting_since_ns_;  ///< until the first record
};

}  // namespace flopmeter
