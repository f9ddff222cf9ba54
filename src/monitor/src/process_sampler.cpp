// SPDX-License-Identifier: Apache-2.0
#include "process_sampler.h"

#include <flopmeter/core/current_phase.h>
#include <flopmeter/core/interpreter_time.h>
#include <flopmeter/telemetry/loader_activity.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::int64_t memory_interval_ns = 100'000'000;
constexpr std::int64_t longest_lock_sample_ns = 100'000'000;
constexpr std::uintptr_t futex_words = 4;  // a condition variable waits at one of two words

}  // namespace

void ProcessSampler::start(std::int64_t now_ns) {
  waiting_since_ns_ = now_ns;
  training_thread_ = static_cast<pid_t>(syscall(SYS_gettid));  // gettid() needs glibc 2.30
  host_load_.emplace(training_thread_);
  garbage_collection_ns().store(0, std::memory_order_relaxed);
}

void ProcessSampler::sample_data_wait() {
  if (current_phase().load(std::memory_order_relaxed) != Phase::data) return;
  const auto busy = thread_or_children_run(training_thread_);
  if (!busy) return;
  ++data_wait_samples_;
  if (*busy) ++data_wait_busy_samples_;
}

void ProcessSampler::sample_interpreter_lock(std::int64_t now_ns) {
  const std::uintptr_t lock = interpreter_lock_futex().load(std::memory_order_relaxed);
  const std::int64_t interval = now_ns - std::exchange(lock_sampled_ns_, now_ns);
  if (lock == 0) return;
  const std::uintptr_t futex = futex_of(training_thread_).value_or(0);
  if (futex + futex_words >= lock && futex <= lock + futex_words)
    lock_wait_ns_ += std::min(interval, longest_lock_sample_ns);
}

void ProcessSampler::fill(StepRecord& record, std::int64_t now_ns) {
  if (data_wait_samples_ != 0) {
    record.data_wait_samples = std::exchange(data_wait_samples_, 0);
    record.data_wait_busy_samples = std::exchange(data_wait_busy_samples_, 0);
  }
  fill_waits(record, now_ns);
  if (!with_memory_) return;
  if (memory_read_ns_ == 0 || now_ns - memory_read_ns_ >= memory_interval_ns) {
    memory_ = read_process_memory();
    memory_read_ns_ = now_ns;
  }
  record.memory_rss_bytes = memory_.rss;
  record.memory_rss_peak_bytes = memory_.rss_peak;
  if (!device_memory_) return;
  const DeviceMemory device = device_memory_();
  record.memory_device_bytes = device.current;
  record.memory_device_peak_bytes = device.peak;
  record.memory_device_reserved_bytes = device.reserved;
}

void ProcessSampler::fill_waits(StepRecord& record, std::int64_t now_ns) {
  if (host_load_) {
    const HostWait wait = host_load_->since_last(now_ns);
    record.run_queue_seconds = wait.run_queue;
    record.throttled_seconds = wait.throttled;
    record.stolen_seconds = wait.stolen;
  }
  const std::int64_t collecting = garbage_collection_ns().exchange(0, std::memory_order_relaxed);
  if (collecting > 0)
    record.garbage_collection_seconds = Seconds{static_cast<double>(collecting) / 1e9};
  if (const std::int64_t waited = std::exchange(lock_wait_ns_, 0); waited > 0)
    record.interpreter_lock_seconds = Seconds{static_cast<double>(waited) / 1e9};
  if (waiting_since_ns_)
    exclude_preparation(record, now_ns - *std::exchange(waiting_since_ns_, {}));
}

/// The waits of the first record began with the monitor, before the first step.
void ProcessSampler::exclude_preparation(StepRecord& record, std::int64_t elapsed_ns) {
  const double elapsed = static_cast<double>(elapsed_ns) / 1e9;
  if (!(elapsed > record.step_seconds.value)) return;
  for (std::optional<Seconds>* wait : {&record.run_queue_seconds,
                                       &record.throttled_seconds,
                                       &record.stolen_seconds,
                                       &record.garbage_collection_seconds,
                                       &record.interpreter_lock_seconds}) {
    if (*wait) (*wait)->value *= record.step_seconds.value / elapsed;
  }
}

}  // namespace flopmeter
