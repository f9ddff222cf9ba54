// SPDX-License-Identifier: Apache-2.0
//
// StepTotals: the only sum over steps, and so the only definition of a run's or a window's MFU:
// ideal time of the model FLOPs in the dtypes that ran, divided by the wall time of the steps.  A
// step lasts from the end of the previous step to its own end.  Only records with the tag `train`
// count; time under other tags is listed by tag.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/phase.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/units.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>

namespace flopmeter {

/// Adds without overflow: a record may hold any number that the training loop reports.
inline void add_saturating(std::int64_t& sum, std::int64_t part) noexcept {
  if (__builtin_add_overflow(sum, part, &sum))
    sum = part > 0 ? std::numeric_limits<std::int64_t>::max()
                   : std::numeric_limits<std::int64_t>::min();
}
inline void add_saturating(WideInt& sum, WideInt part) noexcept {
  sum += part;
}
inline void add_saturating(double& sum, double part) noexcept {
  sum += part;
}

/// An amount and the time of the steps in which it is known.
template <class T>
struct AmountOverTime {
  T amount{};
  double seconds = 0;

  void add(const std::optional<T>& part, double time) {
    if (!part) return;
    add_saturating(amount, *part);
    seconds += time;
  }
  AmountOverTime& operator+=(const AmountOverTime& other) {
    add_saturating(amount, other.amount);
    seconds += other.seconds;
    return *this;
  }
  /// Empty if the amount is unknown in every step, or if the time is implausibly short.
  [[nodiscard]] std::optional<double> rate() const {
    constexpr double most = 1e30;
    if (!(seconds > 0)) return std::nullopt;
    const double found = static_cast<double>(amount) / seconds;
    return found < most ? std::optional{found} : std::nullopt;
  }
};

/// Sums over the train steps of one rank, or of all ranks (of_ranks).
struct StepTotals {
  /// Records of another tag than `train`.
  struct Tagged {
    std::int64_t records = 0;
    double seconds = 0;
  };

  /// Sums over the steps with device time and known bounds of the idle time, in seconds.
  struct Device {
    std::int64_t steps = 0;
    double seconds = 0;
    double host_seconds = 0;
    double idle_min = 0;
    double idle_max = 0;
    double idle_data = 0;  ///< this and the next three: parts of idle_max
    double idle_synchronization = 0;
    double idle_loop = 0;
    double idle_launch = 0;
    double steady_seconds = 0;  ///< this and the next two: without the first step of a process
    double steady_idle_min = 0;
    double steady_idle_max = 0;
    double queue_lag = 0;
    double exposed_communication = 0;
    double exposed_copy = 0;
    double synchronization = 0;
    std::int64_t synchronizations = 0;

    void add(const StepRecord& record);
    Device& operator+=(const Device& other);
  };

  /// Of the steps of one rank.
  [[nodiscard]] static StepTotals of(std::span<const StepRecord> records);
  void add(const StepRecord& record);
  /// Adds further steps of the same rank.
  StepTotals& operator+=(const StepTotals& other);
  /// All ranks of a run over the same steps: amounts are sums in which each sample, each token, and
  /// work that ranks replicate counts once; times are means over the ranks; `steps` are those of
  /// the rank with the most.  One rank is returned as it is.
  [[nodiscard]] static StepTotals of_ranks(std::span<const StepTotals> ranks);

  /// Never clamped; empty if no step has an MFU.
  [[nodiscard]] std::optional<double> mfu() const { return ideal.rate(); }
  [[nodiscard]] std::optional<double> hfu() const { return ideal_hardware.rate(); }
  /// Model FLOP/s of one device.
  [[nodiscard]] std::optional<double> flops_per_second() const { return model_flops.rate(); }
  [[nodiscard]] std::optional<double> tokens_per_second() const { return tokens.rate(); }
  [[nodiscard]] std::optional<double> samples_per_second() const { return samples.rate(); }
  /// Mean wall time of a step; empty without a step.
  [[nodiscard]] std::optional<Seconds> step_seconds() const;
  /// Seconds that all steps spent in a phase; empty if no step has the phase.
  [[nodiscard]] std::optional<double> phase(Phase phase) const {
    return phases[static_cast<std::size_t>(phase)];
  }
  /// Part of the steps' time in a phase, 0 to 1.
  [[nodiscard]] std::optional<double> phase_share(Phase phase) const;
  /// Step time divided by the time since the run's first start; steps repeated after a restart
  /// count once.
  [[nodiscard]] std::optional<double> goodput() const;
  /// Estimated time until step `planned` has ended, with evaluations, checkpoints, and generation
  /// as often as so far.  Empty if a number is unknown.
  [[nodiscard]] std::optional<Seconds> remaining(std::optional<std::int64_t> planned) const;
  /// Real tokens divided by tokens with padding; 1 if no step has both.
  [[nodiscard]] double token_share() const;

  std::int64_t steps = 0;
  std::int64_t steps_with_mfu = 0;
  double seconds = 0;             ///< wall time of the steps
  double inter_step_seconds = 0;  ///< part of it before the first event of a step
  /// Device seconds that the model FLOPs take at peak.  Includes steps of unknown time
  /// source, whose host time is right only on average over many steps.
  AmountOverTime<double> ideal;
  AmountOverTime<double> ideal_hardware;
  AmountOverTime<WideInt> model_flops;  ///< over device seconds
  double replicated_ideal = 0;          ///< part of `ideal` that another rank counts too
  WideInt replicated_flops = 0;         ///< part of `model_flops` that another rank counts too
  AmountOverTime<std::int64_t> tokens;
  AmountOverTime<std::int64_t> samples;
  AmountOverTime<double> monitor_seconds;
  std::array<std::optional<double>, phase_count> phases{};
  std::optional<double> overlapped_communication;
  double run_queue_seconds = 0;
  double throttled_seconds = 0;
  double stolen_seconds = 0;
  double garbage_collection_seconds = 0;
  double interpreter_lock_seconds = 0;
  std::int64_t tokens_with_padding_known = 0;  ///< real tokens of the steps with padded_tokens
  std::int64_t padded_tokens = 0;
  std::int64_t micro_batches = 0;
  WideInt hardware_flops = 0;
  WideInt recompute_flops = 0;
  std::array<WideInt, dtype_count> hardware_flops_by_dtype{};
  std::int64_t data_wait_samples = 0;
  std::int64_t data_wait_busy_samples = 0;
  std::int32_t devices = 1;  ///< of the rank that was added; their sum in of_ranks
  std::int32_t data_parallel = 1;
  std::int32_t replicas = 1;  ///< ranks with different samples whose amounts are summed
  std::map<StepTag, Tagged> other_tags;
  std::int64_t untimed_steps = 0;  ///< of a device whose times are not known; the host's are used
  Device device;
  double last_unix = 0;        ///< end of the newest record of any tag
  std::int64_t last_step = 0;  ///< of the newest train step
  std::optional<Seconds> run_seconds;
  std::optional<Seconds> productive_seconds;
};

}  // namespace flopmeter
