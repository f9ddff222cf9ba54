// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/step_record.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace flopmeter {

/// Finished records for a reader in another thread, such as a logger in Python. Bounded: if they
/// are not read, the oldest are dropped and counted.  Safe for one writer and any number of
/// readers.
class Subscription {
 public:
  explicit Subscription(std::size_t capacity) : records_(capacity == 0 ? 1 : capacity) {}

  /// The next record; empty if none came in time or the run is over and all were read.
  std::optional<StepRecord> next(std::chrono::milliseconds timeout);
  [[nodiscard]] bool closed() const;
  [[nodiscard]] std::uint64_t dropped() const;

  void push(const StepRecord& record);
  void close();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StepRecord> records_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
  bool closed_ = false;
};

}  // namespace flopmeter
