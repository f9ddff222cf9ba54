// SPDX-License-Identifier: Apache-2.0
#include "flop_resolver.h"

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

constexpr std::size_t most_shapes = 4096;  // then all shapes are dropped
constexpr double drift_tolerance =
    0.02;  // a larger difference from the prediction means that the work changed
constexpr double prediction_tolerance = 0.001;  // a smaller difference confirms the prediction
constexpr int predictions_to_trust = 3;
constexpr std::string_view counted_convention = "model-v1";
constexpr std::string_view hidden_kernels =
    "the count is below half of the estimate: some kernels bypass the dispatcher";

std::uint64_t sum(const std::array<std::uint64_t, dtype_count>& by_dtype) {
  std::uint64_t total = 0;
  for (const auto flops : by_dtype) total += flops;
  return total;
}

FlopEstimate scaled(const FlopEstimate& flops, double factor) {
  if (factor == 1) return flops;
  FlopEstimate out;
  const auto scale = [factor](std::uint64_t value) {
    return static_cast<std::uint64_t>(std::llroundl(static_cast<long double>(value) * factor));
  };
  for (std::size_t i = 0; i < dtype_count; ++i) {
    out.model[i] = scale(flops.model[i]);
    out.hardware[i] = scale(flops.hardware[i]);
  }
  out.recompute = scale(flops.recompute);
  return out;
}

}  // namespace

void set_flops(StepRecord& record, const FlopEstimate& flops, FlopsProvenance source) {
  record.model_flops_by_dtype = flops.model;
  record.hardware_flops_by_dtype = flops.hardware;
  record.model_flops = Flops{static_cast<WideInt>(sum(flops.model))};
  record.hardware_flops = Flops{static_cast<WideInt>(sum(flops.hardware))};
  record.recompute_flops = Flops{static_cast<WideInt>(flops.recompute)};
  record.flops_source = source;
}

FlopEstimate flops_of(const StepRecord& record) {
  return {.model = record.model_flops_by_dtype,
          .hardware = record.hardware_flops_by_dtype,
          .recompute = static_cast<std::uint64_t>(record.recompute_flops.value_or(Flops{}).value)};
}

void FlopResolver::set_counters(Dtype dtype, double factor) {
  counter_dtype_ = dtype;
  counter_factor_ = factor;
  counter_reason_ = {};
}

void FlopResolver::no_counters(std::string_view reason) {
  counter_reason_ = reason;
}

namespace {

/// FLOPs of which a rank executes half at least.  A stage of a pipeline may lack the LM head, of
/// which the estimate gives each stage a share.
std::uint64_t expected_of(const World& world, std::uint64_t share, const FlopEstimate& estimated) {
  return world.pipeline_parallel > 1 ? share - std::min(share, estimated.lm_head) : share;
}

/// Work ran that has no FLOP cost: the count is too low by an unknown amount.
bool lacks_work(const StepRecord& record) {
  return record.unsupported_op_calls.value_or(0) != 0;
}

void clear_flops(StepRecord& record) {
  record.model_flops.reset();
  record.hardware_flops.reset();
  record.recompute_flops.reset();
  record.replicated_flops.reset();
  record.model_flops_by_dtype = {};
  record.hardware_flops_by_dtype = {};
  record.flops_source = FlopsProvenance::none;
}

/// The caller stated the FLOPs: a count below half of them missed some work.
void check_stated_flops(StepRecord& record, WideInt expected) {
  const bool lacks = lacks_work(record);
  if (!lacks && 2 * record.counted_flops->value >= expected) return;
  record.hardware_flops.reset();
  record.hardware_flops_by_dtype = {};
  record.recompute_flops.reset();
  if (!lacks) record.flops_note = hidden_kernels;
}

}  // namespace

std::optional<FlopEstimate> FlopResolver::estimate(const Slot& slot) {
  if (estimator_ == nullptr || !slot.record.batch.known()) return std::nullopt;
  const auto found = estimates_.find(slot.record.batch.signature());
  if (found != estimates_.end()) return found->second;
  const auto made = estimator_->estimate(slot.record.batch.batch());
  if (!made) return std::nullopt;
  FlopEstimate own = share_of(*made, world_.size, data_parallel_of(world_), world_.rank);
  if (world_.size == data_parallel_of(world_)) own.executed = made->executed;
  own.visual_tokens = made->visual_tokens;
  if (estimates_.size() >= most_shapes) estimates_.clear();
  estimates_.emplace(slot.record.batch.signature(), own);
  return own;
}

std::optional<FlopEstimate> FlopResolver::predict(const Slot& slot,
                                                  const std::optional<FlopEstimate>& estimated) {
  if (const auto same = measured_.find(slot.record.batch.signature()); same != measured_.end())
    return same->second.flops;
  if (estimated && factor_) return scaled(*estimated, *factor_);
  if (!estimated && slot.record.batch.known()) return fit_.predict(slot.record.batch.batch());
  return std::nullopt;
}

void FlopResolver::exclude_masked_work(StepRecord& record, const FlopEstimate& estimated) const {
  const bool padded = record.batch.batch().padded_length > 0;
  if (!padded && record.attention_pairs != AttentionPairs::full) return;
  if (estimator_->convention() != counted_convention || estimated.executed == 0) return;
  const FlopEstimate counted = flops_of(record);
  const std::uint64_t before = sum(counted.model);
  if (sum(counted.hardware) != estimated.executed) {
    if (padded) record.bounded_flops = record.model_flops;  // padding and masked pairs are in it
    return;
  }
  if (!padded && before == sum(estimated.model)) return;  // the model has no mask
  FlopEstimate exact = counted;
  const std::uint64_t after = std::min(sum(estimated.model), before);
  std::uint64_t left = after;
  std::size_t most = 0;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    exact.model[i] = static_cast<std::uint64_t>(
        static_cast<WideInt>(counted.model[i]) * static_cast<WideInt>(after) /
        static_cast<WideInt>(std::max<std::uint64_t>(before, 1)));
    left -= exact.model[i];
    if (counted.model[i] > counted.model[most]) most = i;
  }
  exact.model[most] += left;
  set_flops(record, exact, FlopsProvenance::counted_catalog);
  record.attention_pairs = AttentionPairs::exact;
}

void FlopResolver::learn(Slot& slot, const std::optional<FlopEstimate>& estimated) {
  StepRecord& record = slot.record;
  const FlopEstimate counted = flops_of(record);
  const auto predicted = predict(slot, estimated);
  const auto model = static_cast<double>(sum(counted.model));
  if (predicted && model > 0) {
    const double error = std::abs(static_cast<double>(sum(predicted->model)) / model - 1);
    right_predictions_ = error <= prediction_tolerance ? right_predictions_ + 1 : 0;
    if (error > drift_tolerance) {
      record.flops_note =
          "drift: the count differs from its prediction by more than 2 %, so earlier measurements "
          "are "
          "dropped";
      measured_.clear();
      fit_.clear();
      factor_.reset();
      plan_.invalidate();
    }
    plan_.set_trusted(right_predictions_ >= predictions_to_trust);
  }
  if (estimated && sum(estimated->model) != 0) {
    factor_ = model / static_cast<double>(sum(estimated->model));
    record.calibration_error = *factor_ - 1;
  }
  if (measured_.size() >= most_shapes) measured_.clear();
  measured_[slot.record.batch.signature()] = {counted, record.process_step};
  if (slot.record.batch.known()) fit_.add(record.batch.batch(), counted);
  last_measured_ = record.process_step;
  record.calibration_age = 0;
}

void FlopResolver::calibrated(Slot& slot, const std::optional<FlopEstimate>& estimated) {
  StepRecord& record = slot.record;
  const auto same = measured_.find(slot.record.batch.signature());
  if (const auto predicted = predict(slot, estimated)) {
    set_flops(record, *predicted, FlopsProvenance::calibrated);
    record.calibration_age = record.process_step -
                             (same != measured_.end() ? same->second.process_step : last_measured_);
    if (factor_) record.calibration_error = *factor_ - 1;
  } else if (estimated) {
    set_flops(record, *estimated, FlopsProvenance::estimate);
    record.flops_note = "no measurement yet";
  } else {
    record.flops_note = user_states_flops_                   ? "not measured in this step"
                        : slot.record.batch.signature() != 0 ? "no measurement of this shape yet"
                                                             : "the batch shape is unknown";
  }
}

/// The count of a rank states what it executed: a pipeline stage, its experts, masked pairs.
void FlopResolver::use_estimate(Slot& slot, FlopEstimate estimated) {
  StepRecord& record = slot.record;
  const std::uint64_t signature = record.batch.signature();
  if (slot.counted) {
    const FlopEstimate counted = flops_of(record);
    if (lacks_work(record)) {
      record.counted_flops = record.model_flops;
    } else if (2 * sum(counted.hardware) <
               expected_of(world_, sum(estimated.hardware), estimated)) {
      record.counted_flops = record.model_flops;
      record.flops_note = hidden_kernels;
    } else {
      if (measured_.size() >= most_shapes) measured_.clear();
      measured_[signature] = {counted, record.process_step};
    }
  }
  if (const auto same = measured_.find(signature); same != measured_.end()) {
    estimated.hardware = same->second.flops.hardware;
    estimated.recompute = same->second.flops.recompute;
  }
  record.attention_pairs = AttentionPairs::exact;
  set_flops(record, estimated, FlopsProvenance::estimate);
}

void FlopResolver::resolve(Slot& slot) {
  choose(slot);
  const FlopsProvenance source = slot.record.flops_source;
  if (source == FlopsProvenance::counted || source == FlopsProvenance::calibrated ||
      source == FlopsProvenance::counted_catalog)
    slot.record.convention = counted_convention;
}

void FlopResolver::choose(Slot& slot) {
  StepRecord& record = slot.record;
  if (record.flops_source == FlopsProvenance::user) {
    user_states_flops_ = true;
    return;
  }
  if (record.flops_source == FlopsProvenance::framework ||
      record.flops_source == FlopsProvenance::estimate) {  // the caller stated them
    if (!slot.counted) return;
    const auto stated = static_cast<std::uint64_t>(record.model_flops->value);
    const auto estimated = estimate(slot);
    check_stated_flops(record, estimated ? expected_of(world_, stated, *estimated) : stated);
    return;
  }
  // The cost of training does not apply to a record without training.
  const bool trains = record.tag != StepTag::evaluation && record.tag != StepTag::checkpoint &&
                      record.tag != StepTag::generation;
  const auto estimated = trains ? estimate(slot) : std::nullopt;
  if (estimated) record.estimated_flops = Flops{static_cast<WideInt>(sum(estimated->model))};
  if (estimated && estimated->visual_tokens > 0 && !record.visual_tokens)
    record.visual_tokens = estimated->visual_tokens;
  if (slot.counter_flops && record.step_seconds.value > 0)
    record.counter_flops_per_second =
        *slot.counter_flops * counter_factor_ / record.step_seconds.value;
  if (estimated && model_flops_ == ModelFlops::estimate) {
    use_estimate(slot, *estimated);
  } else if (slot.counted) {
    use_count(slot, estimated, trains);
  } else {
    use_mode(slot, estimated, trains);
  }
}

/// Unless the count shows less work than a step has.
void FlopResolver::use_count(Slot& slot,
                             const std::optional<FlopEstimate>& estimated,
                             bool trains) {
  StepRecord& record = slot.record;
  if (lacks_work(record)) {
    record.counted_flops = record.model_flops;
    record.bounded_flops.reset();
    if (estimated) {
      set_flops(record, *estimated, FlopsProvenance::estimate);
    } else {
      clear_flops(record);
    }
    return;
  }
  if (estimated &&
      2 * record.model_flops->value < expected_of(world_, sum(estimated->model), *estimated)) {
    record.counted_flops = record.model_flops;
    set_flops(record, *estimated, FlopsProvenance::estimate);
    record.flops_note = hidden_kernels;
    return;
  }
  if (estimated && trains) exclude_masked_work(record, *estimated);
  if (trains) learn(slot, estimated);
  if (options_.mode == Mode::hybrid && record.flops_note.empty())
    record.flops_note = counter_reason_;
}

/// A step that was not counted.
void FlopResolver::use_mode(Slot& slot, const std::optional<FlopEstimate>& estimated, bool trains) {
  StepRecord& record = slot.record;
  switch (options_.mode) {
    case Mode::estimate:
      if (estimated) set_flops(record, *estimated, FlopsProvenance::estimate);
      break;
    case Mode::automatic:
    case Mode::smart:
      if (slot.backed_off) record.flops_note = "counting every step exceeded the budget";
      if (trains) calibrated(slot, estimated);
      break;
    case Mode::hybrid:
      if (slot.counter_flops) {
        use_counters(record, *slot.counter_flops);
      } else {
        record.flops_note = counter_reason_;
      }
      break;
    case Mode::profiler:
      record.flops_note = "not measured in this step";
      break;
  }
  if (record.flops_source == FlopsProvenance::none && estimated && estimator_ != nullptr &&
      options_.mode == Mode::automatic) {
    set_flops(record, *estimated, FlopsProvenance::estimate);
  }
}

/// A hardware counter counts all executed work: the numerator of HFU, not of MFU.
void FlopResolver::use_counters(StepRecord& record, double counted) const {
  const auto flops = static_cast<std::uint64_t>(std::max(0.0, counted * counter_factor_));
  record.hardware_flops = Flops{static_cast<WideInt>(flops)};
  record.hardware_flops_by_dtype[static_cast<std::size_t>(counter_dtype_)] = flops;
  record.flops_source = FlopsProvenance::hardware;
  record.calibration_error = counter_factor_ - 1;
}

}  // namespace flopmeter
