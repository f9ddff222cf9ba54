// SPDX-License-Identifier: Apache-2.0
//
// MeasurePlan: decides, on the training thread and in fixed memory, which steps are counted.
#pragma once

#include <flopmeter/monitor/options.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace flopmeter {

/// Used by the training thread; the members marked so may be called from any thread.
class MeasurePlan {
 public:
  MeasurePlan(const Options& options, bool has_source);

  /// Whether to count the step that begins.
  bool wants(std::int64_t process_step, std::uint64_t signature) noexcept;
  /// Reports the cost of counting the step, as a share of its time.
  void counted(std::int64_t process_step, std::uint64_t signature, double cost_share) noexcept;

  /// Any thread: invalidates all measurements.
  void invalidate() noexcept { invalid_.store(true, std::memory_order_relaxed); }
  /// Any thread: predictions have proved right (or wrong again), so new shapes need no count.
  void set_trusted(bool trusted) noexcept { trusted_.store(trusted, std::memory_order_relaxed); }
  /// Any thread.
  void set_training_phase(TrainingPhase phase) noexcept {
    training_phase_.store(phase, std::memory_order_relaxed);
  }
  /// Any thread: whether hardware counters replace counting.
  void set_hardware(bool working) noexcept { hardware_.store(working, std::memory_order_relaxed); }

  [[nodiscard]] bool backed_off() const noexcept { return backed_off_; }
  [[nodiscard]] std::uint64_t measurements() const noexcept {
    return measurements_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::int64_t period() const noexcept;
  [[nodiscard]] bool wants_smart(std::int64_t process_step, std::uint64_t signature) noexcept;
  [[nodiscard]] bool seen(std::uint64_t signature) const noexcept;
  void remember(std::uint64_t signature) noexcept;

  static constexpr std::size_t table_size = 4096;

  Options options_;
  bool has_source_;
  bool backed_off_ = false;
  bool measured_once_ = false;
  std::int64_t last_measured_ = 0;
  std::int64_t bucket_ = 1;  ///< factor of the period since the budget was exceeded
  double cost_share_ = 0;    ///< moving mean
  int cost_samples_ = 0;
  std::uint64_t round_ = 0;  ///< measurements since the last invalidation
  std::array<std::uint64_t, table_size> seen_{};
  std::atomic<std::uint64_t> measurements_{0};
  std::atomic<bool> invalid_{false};
  std::atomic<bool> trusted_{false};
  std::atomic<bool> hardware_{false};
  std::atomic<TrainingPhase> training_phase_{TrainingPhase::unset};
};

}  // namespace flopmeter
