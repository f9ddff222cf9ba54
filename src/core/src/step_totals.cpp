// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/step_totals.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace flopmeter {
namespace {

void add_optional(std::optional<double>& total, const std::optional<double>& part) {
  if (part) total = total.value_or(0) + *part;
}

std::optional<double> seconds_of(const std::optional<Seconds>& time) {
  return time ? std::optional{time->value} : std::nullopt;
}

/// The mean over the `reporters`, those of `ranks` that report the amount.  If every rank reports,
/// ranks that work on the same samples report the same ones.
void count_once(AmountOverTime<std::int64_t>& total, int reporters, int ranks, int data_parallel) {
  if (reporters == 0) return;
  total.seconds /= reporters;
  if (reporters == ranks && data_parallel < ranks)
    total.amount = static_cast<std::int64_t>(WideInt{total.amount} * data_parallel / ranks);
}

}  // namespace

void StepTotals::Device::add(const StepRecord& record) {
  if (record.time_source != TimeSource::device || !record.device_idle_max_seconds) return;
  const auto value = [](const std::optional<Seconds>& time) { return time ? time->value : 0; };
  steps += record.steps;
  seconds += record.step_seconds.value;
  host_seconds += value(record.host_seconds);
  idle_min += value(record.device_idle_min_seconds);
  idle_max += value(record.device_idle_max_seconds);
  idle_data += value(record.device_idle_data);
  idle_synchronization += value(record.device_idle_synchronization);
  idle_loop += value(record.device_idle_loop);
  idle_launch += value(record.device_idle_launch);
  if (record.process_step > 0) {
    steady_seconds += record.step_seconds.value;
    steady_idle_min += value(record.device_idle_min_seconds);
    steady_idle_max += value(record.device_idle_max_seconds);
  }
  queue_lag += value(record.queue_lag_seconds);
  exposed_communication += value(record.exposed_communication_seconds);
  exposed_copy += value(record.exposed_copy_seconds);
  synchronization += value(record.synchronization_seconds);
  add_saturating(synchronizations, record.synchronizations.value_or(0));
}

StepTotals::Device& StepTotals::Device::operator+=(const Device& other) {
  steps += other.steps;
  seconds += other.seconds;
  host_seconds += other.host_seconds;
  idle_min += other.idle_min;
  idle_max += other.idle_max;
  idle_data += other.idle_data;
  idle_synchronization += other.idle_synchronization;
  idle_loop += other.idle_loop;
  idle_launch += other.idle_launch;
  steady_seconds += other.steady_seconds;
  steady_idle_min += other.steady_idle_min;
  steady_idle_max += other.steady_idle_max;
  queue_lag += other.queue_lag;
  exposed_communication += other.exposed_communication;
  exposed_copy += other.exposed_copy;
  synchronization += other.synchronization;
  add_saturating(synchronizations, other.synchronizations);
  return *this;
}

StepTotals StepTotals::of(std::span<const StepRecord> records) {
  StepTotals totals;
  for (const StepRecord& record : records) totals.add(record);
  return totals;
}

void StepTotals::add(const StepRecord& record) {
  const double time = record.step_seconds.value;
  if (record.time_unix >= last_unix) {
    last_unix = record.time_unix;
    if (record.tag == StepTag::train) last_step = record.step;
    if (record.run_seconds) run_seconds = record.run_seconds;
    if (record.productive_seconds) productive_seconds = record.productive_seconds;
  }
  if (record.tag != StepTag::train) {
    Tagged& tagged = other_tags[record.tag];
    ++tagged.records;
    tagged.seconds += time;
    return;
  }
  const double device_time = time * record.devices;
  const bool is_untimed = record.time_source == TimeSource::unknown && record.host_seconds;
  steps += record.steps;
  seconds += time;
  inter_step_seconds += record.inter_step_seconds.value_or(Seconds{}).value;
  devices = record.devices;
  data_parallel = std::max(1, record.data_parallel);
  if (record.mfu) {
    steps_with_mfu += record.steps;
    ideal.add(*record.mfu * device_time, device_time);
  } else if (is_untimed && record.ideal_seconds) {
    ideal.add(record.ideal_seconds->value * record.devices, device_time);
  }
  if (record.replicated_flops && record.model_flops && record.model_flops->value > 0) {
    replicated_flops += record.replicated_flops->value;
    replicated_ideal += record.mfu.value_or(0) * device_time *
                        static_cast<double>(record.replicated_flops->value) /
                        static_cast<double>(record.model_flops->value);
  }
  if (is_untimed) untimed_steps += record.steps;
  device.add(record);
  if (record.hfu) ideal_hardware.add(*record.hfu * device_time, device_time);
  if (record.model_flops) model_flops.add(record.model_flops->value, device_time);
  tokens.add(record.tokens, time);
  samples.add(record.samples, time);
  monitor_seconds.add(seconds_of(record.monitor_seconds), time);
  for (std::size_t i = 0; i < phase_count; ++i)
    add_optional(phases[i], seconds_of(record.phases[i]));
  add_optional(overlapped_communication, seconds_of(record.overlapped_communication));
  run_queue_seconds += record.run_queue_seconds.value_or(Seconds{}).value;
  throttled_seconds += record.throttled_seconds.value_or(Seconds{}).value;
  stolen_seconds += record.stolen_seconds.value_or(Seconds{}).value;
  garbage_collection_seconds += record.garbage_collection_seconds.value_or(Seconds{}).value;
  interpreter_lock_seconds += record.interpreter_lock_seconds.value_or(Seconds{}).value;
  if (record.tokens && record.padded_tokens && *record.padded_tokens >= *record.tokens) {
    add_saturating(tokens_with_padding_known, *record.tokens);
    add_saturating(padded_tokens, *record.padded_tokens);
  }
  micro_batches += std::int64_t{record.micro_batches} * record.steps;
  if (record.hardware_flops) hardware_flops += record.hardware_flops->value;
  if (record.recompute_flops) recompute_flops += record.recompute_flops->value;
  for (std::size_t i = 0; i < dtype_count; ++i)
    hardware_flops_by_dtype[i] += record.hardware_flops_by_dtype[i];
  add_saturating(data_wait_samples, record.data_wait_samples.value_or(0));
  add_saturating(data_wait_busy_samples, record.data_wait_busy_samples.value_or(0));
}

StepTotals& StepTotals::operator+=(const StepTotals& other) {
  steps += other.steps;
  steps_with_mfu += other.steps_with_mfu;
  seconds += other.seconds;
  inter_step_seconds += other.inter_step_seconds;
  ideal += other.ideal;
  ideal_hardware += other.ideal_hardware;
  model_flops += other.model_flops;
  replicated_ideal += other.replicated_ideal;
  replicated_flops += other.replicated_flops;
  tokens += other.tokens;
  samples += other.samples;
  monitor_seconds += other.monitor_seconds;
  for (std::size_t i = 0; i < phase_count; ++i) add_optional(phases[i], other.phases[i]);
  add_optional(overlapped_communication, other.overlapped_communication);
  run_queue_seconds += other.run_queue_seconds;
  throttled_seconds += other.throttled_seconds;
  stolen_seconds += other.stolen_seconds;
  garbage_collection_seconds += other.garbage_collection_seconds;
  interpreter_lock_seconds += other.interpreter_lock_seconds;
  add_saturating(tokens_with_padding_known, other.tokens_with_padding_known);
  add_saturating(padded_tokens, other.padded_tokens);
  micro_batches += other.micro_batches;
  hardware_flops += other.hardware_flops;
  recompute_flops += other.recompute_flops;
  for (std::size_t i = 0; i < dtype_count; ++i)
    hardware_flops_by_dtype[i] += other.hardware_flops_by_dtype[i];
  add_saturating(data_wait_samples, other.data_wait_samples);
  add_saturating(data_wait_busy_samples, other.data_wait_busy_samples);
  for (const auto& [tag, tagged] : other.other_tags) {
    other_tags[tag].records += tagged.records;
    other_tags[tag].seconds += tagged.seconds;
  }
  untimed_steps += other.untimed_steps;
  device += other.device;
  if (other.steps > 0) {
    devices = other.devices;
    data_parallel = other.data_parallel;
  }
  if (other.last_unix >= last_unix) {
    last_unix = other.last_unix;
    last_step = std::max(last_step, other.last_step);
    if (other.run_seconds) run_seconds = other.run_seconds;
    if (other.productive_seconds) productive_seconds = other.productive_seconds;
  }
  return *this;
}

StepTotals StepTotals::of_ranks(std::span<const StepTotals> ranks) {
  if (ranks.size() == 1) return ranks.front();
  StepTotals all;
  if (ranks.empty()) return all;
  std::int64_t steps = 0;
  std::int32_t devices = 0;
  int with_tokens = 0;
  int with_samples = 0;
  for (const StepTotals& rank : ranks) {
    all += rank;
    steps = std::max(steps, rank.steps);
    devices += rank.devices;
    with_tokens += rank.tokens.seconds > 0 ? 1 : 0;
    with_samples += rank.samples.seconds > 0 ? 1 : 0;
  }
  // A rank with fewer steps counts as a part of one, so that the time of a mean step stays right.
  const double count = steps > 0 ? static_cast<double>(all.steps) / static_cast<double>(steps)
                                 : static_cast<double>(ranks.size());
  all.steps = steps;
  all.devices = devices;
  all.ideal.amount -= std::exchange(all.replicated_ideal, 0);
  all.model_flops.amount -= std::exchange(all.replicated_flops, 0);
  all.replicas = std::min(all.data_parallel, static_cast<std::int32_t>(ranks.size()));
  all.micro_batches = std::llround(static_cast<double>(all.micro_batches) / count);
  for (double* time : {&all.seconds,
                       &all.inter_step_seconds,
                       &all.run_queue_seconds,
                       &all.throttled_seconds,
                       &all.stolen_seconds,
                       &all.garbage_collection_seconds,
                       &all.interpreter_lock_seconds})
    *time /= count;
  for (auto& time : all.phases) {
    if (time) *time /= count;
  }
  if (all.overlapped_communication) *all.overlapped_communication /= count;
  for (auto& [tag, tagged] : all.other_tags) tagged.seconds /= static_cast<double>(ranks.size());
  const auto size = static_cast<int>(ranks.size());
  count_once(all.tokens, with_tokens, size, all.data_parallel);
  count_once(all.samples, with_samples, size, all.data_parallel);
  return all;
}

std::optional<Seconds> StepTotals::step_seconds() const {
  if (steps == 0) return std::nullopt;
  return Seconds{seconds / static_cast<double>(steps)};
}

std::optional<double> StepTotals::phase_share(Phase phase) const {
  const auto time = this->phase(phase);
  if (!time || !(seconds > 0)) return std::nullopt;
  return *time / seconds;
}

std::optional<double> StepTotals::goodput() const {
  if (!run_seconds || !productive_seconds || !(run_seconds->value > 0)) return std::nullopt;
  return *productive_seconds / *run_seconds;
}

std::optional<Seconds> StepTotals::remaining(std::optional<std::int64_t> planned) const {
  if (!planned || steps == 0) return std::nullopt;
  double time = seconds;
  for (const StepTag tag : {StepTag::evaluation, StepTag::checkpoint, StepTag::generation}) {
    if (const auto found = other_tags.find(tag); found != other_tags.end())
      time += found->second.seconds;
  }
  const double left = std::max(static_cast<double>(*planned) - static_cast<double>(last_step), 0.0);
  return Seconds{left * time / static_cast<double>(steps)};
}

double StepTotals::token_share() const {
  return padded_tokens > 0
             ? static_cast<double>(tokens_with_padding_known) / static_cast<double>(padded_tokens)
             : 1;
}

}  // namespace flopmeter
