// SPDX-License-Identifier: Apache-2.0
#include "world_sums.h"

#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr std::size_t most_steps = 1'000'000;

/// A total that stays only while every step has its part.
template <class T>
class Total {
 public:
  void add(const std::optional<T>& part) {
    known_ = known_ && part;
    if (part) sum_ = sum_ + *part;
    any_ = true;
  }
  [[nodiscard]] std::optional<T> value() const {
    return known_ && any_ ? std::optional{sum_} : std::nullopt;
  }

 private:
  T sum_{};
  bool known_ = true;
  bool any_ = false;
};

}  // namespace

/// Samples and tokens of ranks that work on the same ones, counted once: one rank of
/// each group or all of them report the same values.
std::optional<std::int64_t> WorldSums::Step::each_once(const Sum& sum) const {
  if (!complete() || sum.ranks == 0) return std::nullopt;
  if (sum.ranks == data_parallel) return static_cast<std::int64_t>(sum.value);
  const WideInt total = sum.value * data_parallel;
  if (sum.ranks != world_size || total % world_size != 0) return std::nullopt;
  return static_cast<std::int64_t>(total / world_size);
}

void WorldSums::add(const StepRecord& record, int rank) {
  if (steps_.size() >= most_steps && !steps_.contains(record.step)) {
    ++excluded_;
    return;
  }
  Step& step = steps_[record.step];
  if (step.ranks > 0 && step.world_size != record.world_size) {
    // A restart with another world size did the step again: the later world counts.
    if (record.time_unix < step.time_unix) return;
    step = {};
  }
  ++step.ranks;
  step.world_size = record.world_size;
  step.time_unix = record.time_unix;
  step.data_parallel = std::max(1, record.data_parallel);
  const WideInt replicated = record.replicated_flops.value_or(Flops{}).value;
  if (record.model_flops) step.model.add(record.model_flops->value - replicated);
  if (record.hardware_flops) step.hardware.add(record.hardware_flops->value);
  if (record.tokens) step.tokens.add(*record.tokens);
  if (record.samples) step.samples.add(*record.samples);
  if (record.mfu) step.mfu.add(*record.mfu, rank);
  step.seconds.add(record.step_seconds.value, rank);
}

std::vector<WorldStep> WorldSums::steps() const {
  std::vector<WorldStep> all;
  all.reserve(steps_.size());
  for (const auto& [number, step] : steps_) {
    all.push_back({.step = number,
                   .ranks = step.ranks,
                   .world_size = step.world_size,
                   .seconds = step.seconds,
                   .mfu = step.mfu,
                   .model_flops = step.flops(step.model),
                   .hardware_flops = step.flops(step.hardware),
                   .tokens = step.each_once(step.tokens),
                   .samples = step.each_once(step.samples)});
  }
  std::sort(all.begin(), all.end(), [](const WorldStep& a, const WorldStep& b) {
    return a.step < b.step;
  });
  return all;
}

WorldTotals WorldSums::totals() const {
  WorldTotals totals;
  Total<Flops> reported_model;
  Total<Flops> reported_hardware;
  Total<Flops> model;
  Total<Flops> hardware;
  Total<std::int64_t> tokens;
  Total<std::int64_t> samples;
  for (const auto& [number, step] : steps_) {
    reported_model.add(step.reported(step.model));
    reported_hardware.add(step.reported(step.hardware));
    if (!step.complete()) {
      ++totals.incomplete_steps;
      continue;
    }
    ++totals.complete_steps;
    model.add(step.flops(step.model));
    hardware.add(step.flops(step.hardware));
    tokens.add(step.each_once(step.tokens));
    samples.add(step.each_once(step.samples));
  }
  totals.model_flops = model.value();
  totals.hardware_flops = hardware.value();
  totals.reported_model_flops = reported_model.value();
  totals.reported_hardware_flops = reported_hardware.value();
  totals.tokens = tokens.value();
  totals.samples = samples.value();
  return totals;
}

std::vector<std::string> WorldSums::notes() const {
  std::vector<std::string> notes;
  if (excluded_ > 0)
    notes.push_back(grouped(excluded_) + " records are not in the world's sums, which hold " +
                    grouped(most_steps) + " steps");
  return notes;
}

}  // namespace flopmeter
