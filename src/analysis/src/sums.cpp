// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/evidence.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

std::int64_t nanoseconds(Seconds time) {
  constexpr double most = 9e17;  // beyond any run, within 64 bits
  return std::isfinite(time.value) ? std::llround(std::clamp(time.value * 1e9, 0.0, most)) : 0;
}

/// Moves at most `time` from what is left of a step to `to`.
void move(std::int64_t& left, std::int64_t& to, Seconds time) {
  const std::int64_t part = std::min(left, nanoseconds(time));
  left -= part;
  to += part;
}

void add_phases(Sums& sums, const StepRecord& record, std::int64_t left) {
  constexpr std::array<std::pair<Phase, std::int64_t Sums::*>, 7> phases = {{
      {Phase::data, &Sums::data},
      {Phase::forward, &Sums::forward},
      {Phase::backward, &Sums::backward},
      {Phase::optimizer, &Sums::optimizer},
      {Phase::communication, &Sums::communication},
      {Phase::checkpoint, &Sums::checkpoint},
      {Phase::evaluation, &Sums::evaluation},
  }};
  for (const auto& [phase, member] : phases) {
    const auto time = record.phases[static_cast<std::size_t>(phase)];
    if (!time) continue;
    move(left, sums.*member, *time);
    if (phase == Phase::forward || phase == Phase::backward) sums.phased = true;
  }
  sums.other += left;
}

/// A step tagged for the checkpoint or evaluation inside it did train as well.
bool trained(const StepRecord& record) {
  const bool aside = record.tag == StepTag::checkpoint || record.tag == StepTag::evaluation;
  return record.tag == StepTag::train || (aside && record.model_flops.has_value());
}

/// The fastest of the formats that a run in `own` may change to without other mathematics.
std::optional<Dtype> faster_dtype(const PeakTable& peaks, Dtype own) {
  const auto own_peak = peaks.peak(own);
  if (!own_peak || (own != Dtype::fp64 && own != Dtype::fp32 && own != Dtype::tf32))
    return std::nullopt;
  std::optional<Dtype> best;
  double rate = own_peak->value;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    const auto peak = peaks.peak(dtype);
    const bool back = dtype == Dtype::fp32 && own != Dtype::fp64;
    if (back || !peak || peak->value <= rate) continue;
    best = dtype;
    rate = peak->value;
  }
  return best;
}

}  // namespace

Sums summarize(const Evidence& evidence) {
  Sums sums;
  std::array<double, dtype_count> by_dtype{};
  double ideal = 0;
  double measured_seconds = 0;
  std::int64_t tokens_of_padded = 0;
  std::int64_t padded = 0;
  bool counted = false;
  bool first = true;
  for (const StepRecord& record : evidence.steps) {
    const bool left_out = record.tag == StepTag::warmup || record.tag == StepTag::compile ||
                          record.tag == StepTag::profile;
    if (left_out) {
      first = true;  // what lies before the next step belongs to this one
      continue;
    }
    const std::int64_t step = nanoseconds(record.step_seconds);
    if (record.inter_step_seconds && !std::exchange(first, false)) {
      const std::int64_t between = nanoseconds(*record.inter_step_seconds);
      sums.between += between;
      sums.total += between;
    }
    sums.total += step;
    if (!trained(record)) {
      (record.tag == StepTag::evaluation ? sums.evaluation : sums.checkpoint) += step;
      continue;
    }
    ++sums.steps;
    sums.devices = record.devices;
    add_phases(sums, record, step);
    sums.samples += record.samples.value_or(0);
    sums.tokens += record.tokens.value_or(0);
    sums.micro_batches += record.micro_batches;
    sums.data_wait_samples += record.data_wait_samples.value_or(0);
    sums.data_wait_busy_samples += record.data_wait_busy_samples.value_or(0);
    if (record.tokens && record.padded_tokens && *record.padded_tokens >= *record.tokens) {
      tokens_of_padded += *record.tokens;
      padded += *record.padded_tokens;
    }
    if (!record.mfu || !std::isfinite(*record.mfu)) continue;
    ++sums.measured;
    ideal += *record.mfu * record.step_seconds.value;
    measured_seconds += record.step_seconds.value;
    counted = counted || record.flops_source == FlopsProvenance::counted ||
              record.flops_source == FlopsProvenance::calibrated;
    for (std::size_t i = 0; i < dtype_count; ++i)
      by_dtype[i] += static_cast<double>(record.hardware_flops_by_dtype[i]);
    if (record.hardware_flops)
      sums.hardware_flops += static_cast<double>(record.hardware_flops->value);
    if (record.recompute_flops)
      sums.recompute_flops += static_cast<double>(record.recompute_flops->value);
  }
  if (padded > 0)
    sums.useful_share = static_cast<double>(tokens_of_padded) / static_cast<double>(padded);
  if (sums.measured == 0 || !(measured_seconds > 0)) return sums;
  sums.recorded_mfu = ideal / measured_seconds;
  // Steps whose FLOPs were not measured are taken to be like those that were.
  ideal *= static_cast<double>(sums.steps) / static_cast<double>(sums.measured);
  // A count sees the work on padding too; an estimate is of real tokens alone.
  if (counted) ideal *= sums.useful_share;
  sums.ideal = nanoseconds({ideal});
  sums.ideal_best = sums.ideal;
  const auto most = std::max_element(by_dtype.begin(), by_dtype.end());
  if (*most <= 0) return sums;
  sums.own_dtype = static_cast<Dtype>(most - by_dtype.begin());
  double own_time = 0;
  double best_time = 0;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto peak = evidence.peaks.peaks[i];
    if (by_dtype[i] <= 0 || !peak) continue;
    own_time += by_dtype[i] / peak->value;
    const auto faster = faster_dtype(evidence.peaks, static_cast<Dtype>(i));
    if (faster && static_cast<Dtype>(i) == *sums.own_dtype) sums.best_dtype = faster;
    best_time += by_dtype[i] / (faster ? evidence.peaks.peak(*faster)->value : peak->value);
  }
  if (own_time > 0) {
    sums.ideal_best =
        std::llround(static_cast<double>(sums.ideal) * std::min(1.0, best_time / own_time));
  }
  return sums;
}

}  // namespace flopmeter
