// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/diagnosis/evidence.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace flopmeter {
namespace {

/// A call shorter than this costs more to launch than to run.
constexpr double small_call_seconds = 15e-6;
/// What watching an operator adds to its step.
constexpr double watched_call_seconds = 2e-6;
/// No operator that only moves data is slower than this, a call and an element: one that seems so
/// was held up by another program.
constexpr double call_seconds = 25e-6;
constexpr double element_seconds = 20e-9;

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

/// What starting a call takes: no more than the shortest of the linears takes altogether.
double start_seconds(const std::vector<SurveyResult>& surveys) {
  double shortest = small_call_seconds;
  for (const SurveyResult& survey : surveys) {
    for (const SurveyRow& row : survey.rows) {
      if (is_linear(row) && row.calls > 0)
        shortest = std::min(shortest, row.self.value / static_cast<double>(row.calls));
    }
  }
  return shortest;
}
double launch_of(const SurveyRow& row, double start) {
  return std::min(row.self.value, start * static_cast<double>(row.calls));
}

double running_at_best(const std::vector<SurveyResult>& surveys, double start) {
  double best_rate = 0;
  double linear_flops = 0;
  double others = 0;
  for (const SurveyResult& survey : surveys) {
    double all = 0;
    for (const SurveyRow& row : survey.rows) all += static_cast<double>(row.flops);
    for (const SurveyRow& row : survey.rows) {
      if (row.recompute || row.phase == Phase::optimizer || row.flops == 0) continue;
      const auto flops = static_cast<double>(row.flops);
      const double running = row.self.value - launch_of(row, start);
      (is_linear(row) ? linear_flops : others) += is_linear(row) ? flops : running;
      // One that does a part worth naming.
      if (is_linear(row) && running > 0 && flops > 0.02 * all)
        best_rate = std::max(best_rate, flops / running);
    }
  }
  return others + (best_rate > 0 ? linear_flops / best_rate : 0);
}

/// Calls that are alike, whether or not each was tiny.
using RowKey = std::tuple<std::string, std::string, Phase, bool, bool, std::int64_t>;
RowKey key_of(const SurveyRow& row) {
  return {row.name, row.shape, row.phase, row.backward, row.recompute, row.elements};
}

std::map<RowKey, double> seconds_a_call(const SurveyResult& survey) {
  std::map<RowKey, std::pair<double, double>> sums;
  for (const SurveyRow& row : survey.rows) {
    auto& [seconds, calls] = sums[key_of(row)];
    seconds += row.self.value;
    calls += static_cast<double>(row.calls);
  }
  std::map<RowKey, double> means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / std::max(sum.second, 1.0);
  return means;
}

}  // namespace

Sums add_up(const Evidence& evidence) {
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
                          record.tag == StepTag::survey;
    if (left_out) {
      first = true;  // what lies before the next step belongs to this one
      continue;
    }
    const std::int64_t step = nanoseconds(record.step_seconds);
    if (record.between_seconds && !std::exchange(first, false)) {
      const std::int64_t between = nanoseconds(*record.between_seconds);
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
    sums.micro_steps += record.micro_steps;
    sums.data_looks += record.data_looks.value_or(0);
    sums.data_busy_looks += record.data_busy_looks.value_or(0);
    if (record.tokens && record.padded_tokens && *record.padded_tokens >= *record.tokens) {
      tokens_of_padded += *record.tokens;
      padded += *record.padded_tokens;
    }
    if (!record.mfu || !std::isfinite(*record.mfu)) continue;
    ++sums.measured;
    ideal += *record.mfu * record.step_seconds.value;
    measured_seconds += record.step_seconds.value;
    counted = counted || record.flops_source == FlopsSource::counted ||
              record.flops_source == FlopsSource::calibrated;
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

bool is_linear(const SurveyRow& row) {
  const auto named = [&](std::string_view part) {
    return row.name.find(part) != std::string::npos;
  };
  return row.kind == OpKind::priced && row.flops > 0 && (named("aten::mm") || named("aten::addmm"));
}

bool is_small(const SurveyRow& row) {
  return row.kind == OpKind::tiny ||
         row.self.value < small_call_seconds * static_cast<double>(row.calls);
}

std::vector<SurveyResult> without_interference(std::vector<SurveyResult> surveys) {
  std::map<RowKey, double> best;
  for (const SurveyResult& survey : surveys) {
    for (const auto& [key, seconds] : seconds_a_call(survey)) {
      const auto [at, fresh] = best.try_emplace(key, seconds);
      if (!fresh) at->second = std::min(at->second, seconds);
    }
  }
  for (SurveyResult& survey : surveys) {
    const auto own = seconds_a_call(survey);
    for (SurveyRow& row : survey.rows) {
      double allowed = best.at(key_of(row));
      const bool moves = row.kind == OpKind::memory || row.kind == OpKind::tiny;
      if (moves && !row.across_devices) {
        allowed = std::min(allowed,
                           call_seconds + 2 * element_seconds * static_cast<double>(row.elements));
      }
      const double seconds = own.at(key_of(row));
      if (seconds > allowed) row.self.value *= allowed / seconds;
    }
  }
  return surveys;
}

OpTimes op_times(const Evidence& evidence) {
  OpTimes sum;
  double recompute_calls = 0;
  bool all_records = true;
  const std::vector<SurveyResult> clean = without_interference(evidence.surveys);
  const double start = start_seconds(clean);
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const SurveyResult& survey = clean[i];
    ++sum.surveys;
    sum.on_device = sum.on_device || survey.on_device;
    double held_up = 0;
    double in_other = 0;
    double calls = 0;
    for (std::size_t j = 0; j < survey.rows.size(); ++j) {
      const SurveyRow& row = survey.rows[j];
      if (row.phase != Phase::forward && row.phase != Phase::backward && row.phase != Phase::other)
        continue;
      const auto row_calls = static_cast<double>(row.calls);
      const double self = row.self.value;
      calls += row_calls;
      held_up += evidence.surveys[i].rows[j].self.value - self;
      if (row.across_devices) {
        sum.copies += self;
        continue;
      }
      if (row.recompute) {
        sum.recompute += self;
        recompute_calls += row_calls;
        continue;
      }
      if (row.phase == Phase::other) in_other += self;
      switch (row.kind) {
        case OpKind::priced:
          sum.priced += self;
          if (row.flops > 0) sum.priced_launch += launch_of(row, start);
          sum.flops += static_cast<double>(row.flops);
          break;
        case OpKind::memory:
        case OpKind::tiny:
          (is_small(row) ? sum.small : sum.memory) += self;
          if (!is_small(row)) sum.memory_launch += launch_of(row, start);
          break;
        case OpKind::unknown:
          sum.unknown += self;
          break;
      }
    }
    sum.calls += calls;
    sum.in_other += in_other;
    const auto record =
        std::find_if(evidence.steps.begin(), evidence.steps.end(), [&](const StepRecord& step) {
          return step.tag == StepTag::survey && step.step == survey.step;
        });
    all_records = all_records && record != evidence.steps.end();
    if (!all_records) continue;
    const auto phase = [&](Phase which) {
      return record->phases[static_cast<std::size_t>(which)].value_or(Seconds{}).value;
    };
    const double compute = phase(Phase::forward) + phase(Phase::backward);
    all_records = compute > 0;
    sum.compute += std::max(compute + in_other - held_up - calls * watched_call_seconds, 0.0);
  }
  if (sum.surveys == 0) return sum;
  if (!all_records) sum.compute = 0;
  sum.at_best = running_at_best(clean, start);
  // The time between the operators that compute again is the node's in which they run.
  sum.recompute = std::max(sum.recompute - recompute_calls * watched_call_seconds, 0.0);
  sum.calls -= recompute_calls;
  const double n = sum.surveys;
  for (double* value : {&sum.recompute,
                        &sum.priced,
                        &sum.priced_launch,
                        &sum.memory_launch,
                        &sum.at_best,
                        &sum.memory,
                        &sum.small,
                        &sum.unknown,
                        &sum.in_other,
                        &sum.copies,
                        &sum.calls,
                        &sum.flops,
                        &sum.compute})
    *value /= n;
  return sum;
}

}  // namespace flopmeter
