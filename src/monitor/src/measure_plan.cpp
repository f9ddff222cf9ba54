// SPDX-License-Identifier: Apache-2.0
#include "measure_plan.h"

#include <algorithm>

namespace flopmeter {
namespace {

constexpr int cost_window = 32;  // steps whose cost is averaged before the budget is applied
constexpr std::int64_t longest_bucket = 1 << 20;

}  // namespace

MeasurePlan::MeasurePlan(const Options& options, bool has_source)
    : options_(options), has_source_(has_source) {
  training_phase_.store(options.training_phase, std::memory_order_relaxed);
}

std::int64_t MeasurePlan::period() const noexcept {
  const bool smart = options_.mode == Mode::smart || options_.mode == Mode::automatic;
  std::int64_t steps = smart ? options_.recalibration_frequency : options_.measure_frequency;
  switch (training_phase_.load(std::memory_order_relaxed)) {
    case TrainingPhase::unset:
      break;
    case TrainingPhase::warmup:
      steps = options_.warmup_frequency;
      break;
    case TrainingPhase::main:
      steps = options_.main_frequency;
      break;
    case TrainingPhase::finetune:
      steps = options_.finetune_frequency;
      break;
  }
  return steps * bucket_;
}

bool MeasurePlan::seen(std::uint64_t signature) const noexcept {
  for (std::size_t i = 0; i < 8; ++i) {
    if (seen_[(signature + i) % table_size] == signature) return true;
  }
  return false;
}

void MeasurePlan::remember(std::uint64_t signature) noexcept {
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint64_t& place = seen_[(signature + i) % table_size];
    if (place == signature) return;
    if (place == 0 || i == 7) {
      place = signature;
      return;
    }
  }
}

bool MeasurePlan::wants_smart(std::int64_t process_step, std::uint64_t signature) noexcept {
  if (!measured_once_) return options_.initial_profiling || process_step >= period();
  const std::int64_t age = process_step - last_measured_;
  if (options_.calibration && period() > 0 && age >= period()) return true;
  // A new shape is counted unless predictions have proved right.  The k-th count is followed by k^2
  // steps without one, so that n steps of ever new shapes cost about cbrt(3 n) counts.
  const auto k = static_cast<std::int64_t>(std::min<std::uint64_t>(round_, 1000));
  return options_.calibration && signature != 0 && !trusted_.load(std::memory_order_relaxed) &&
         age >= k * k * bucket_ && !seen(signature);
}

bool MeasurePlan::wants(std::int64_t process_step, std::uint64_t signature) noexcept {
  if (!has_source_) return false;
  if (invalid_.load(std::memory_order_relaxed) &&
      invalid_.exchange(false, std::memory_order_relaxed)) {
    measured_once_ = false;
    round_ = 0;
    seen_.fill(0);
  }
  switch (options_.mode) {
    case Mode::estimate:
      return false;
    case Mode::automatic:
      return !backed_off_ || wants_smart(process_step, signature);
    case Mode::smart:
      return wants_smart(process_step, signature);
    case Mode::hybrid:
      if (hardware_.load(std::memory_order_relaxed) || !options_.fallback_to_profiler) return false;
      [[fallthrough]];
    case Mode::profiler: {
      const std::int64_t every = period();
      return every > 0 && (!measured_once_ || process_step - last_measured_ >= every);
    }
  }
  return false;
}

void MeasurePlan::counted(std::int64_t process_step,
                          std::uint64_t signature,
                          double cost_share) noexcept {
  measured_once_ = true;
  last_measured_ = process_step;
  ++round_;
  measurements_.fetch_add(1, std::memory_order_relaxed);
  if (signature != 0) remember(signature);

  cost_samples_ = std::min(cost_samples_ + 1, cost_window);
  cost_share_ += (cost_share - cost_share_) / cost_samples_;
  const bool every_step = options_.mode == Mode::automatic && !backed_off_;
  if (every_step) {
    if (cost_samples_ == cost_window && cost_share_ > options_.overhead_budget) backed_off_ = true;
    return;
  }
  const auto steps = static_cast<double>(std::max<std::int64_t>(period(), 1));
  if (cost_share_ / steps > options_.overhead_budget && bucket_ < longest_bucket) bucket_ *= 2;
}

}  // namespace flopmeter
