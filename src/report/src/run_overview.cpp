// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/run_overview.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr std::array<std::string_view, 17> curves = {"mfu",
                                                     "hfu",
                                                     "tflops_per_device",
                                                     "tokens_per_second",
                                                     "samples_per_second",
                                                     "step_seconds",
                                                     "memory_bytes.rss",
                                                     "memory_bytes.device",
                                                     "memory_bytes.device_reserved",
                                                     "phases.data",
                                                     "phases.forward",
                                                     "phases.backward",
                                                     "phases.optimizer",
                                                     "phases.communication",
                                                     "phases.checkpoint",
                                                     "phases.evaluation",
                                                     "phases.other"};

std::optional<double> real(const std::optional<std::int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

void add_step(RankTotals& totals, const StepRecord& record) {
  const double start = record.time_unix - record.step_seconds.value;
  totals.first_unix = totals.steps == 0 ? start : std::min(totals.first_unix, start);
  ++totals.steps;
  totals.seconds += record.step_seconds.value;
  totals.mfu.add(record.mfu, record.step_seconds);
  totals.hfu.add(record.hfu, record.step_seconds);
  if (record.time_unix >= totals.last_unix) {
    totals.last_unix = record.time_unix;
    totals.last_step = record.step;
    totals.mfu_now = record.mfu_window ? record.mfu_window : record.mfu;
  }
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (record.phases[i]) totals.phases[i] = totals.phases[i].value_or(0) + record.phases[i]->value;
  }
  const auto peak = record.memory_device_peak_bytes ? record.memory_device_peak_bytes
                                                    : record.memory_rss_peak_bytes;
  if (peak) totals.memory_peak_bytes = std::max(totals.memory_peak_bytes.value_or(0), *peak);
  totals.dropped_records = std::max(totals.dropped_records, record.dropped_records);
}

}  // namespace

void RankUtilization::add(const std::optional<double>& value, Seconds time) {
  if (!value) return;
  at_peak += *value * time.value;
  seconds += time.value;
}

void RankUtilization::add(const RankUtilization& other) {
  at_peak += other.at_peak;
  seconds += other.seconds;
}

std::optional<double> RankUtilization::value() const {
  if (!(seconds > 0)) return std::nullopt;
  return at_peak / seconds;
}

std::optional<double> RankTotals::share(Phase phase) const {
  const auto& spent = phases[static_cast<std::size_t>(phase)];
  if (!spent || !(seconds > 0)) return std::nullopt;
  return *spent / seconds;
}

double RankTotals::own_seconds() const {
  const double waited = phases[static_cast<std::size_t>(Phase::communication)].value_or(0);
  return steps == 0 ? 0 : (seconds - waited) / static_cast<double>(steps);
}

void Throughput::add(const std::optional<double>& value, Seconds time) {
  if (!value) return;
  amount += *value;
  seconds += time.value;
}

std::optional<double> Throughput::per_second() const {
  if (!(seconds > 0)) return std::nullopt;
  return amount / seconds;
}

RunOverview::RunOverview() : timeline(curves) {}

void RunOverview::add(const StepRecord& record) {
  if (record.run_seconds && record.productive_seconds && record.run_seconds->value > 0 &&
      record.time_unix >= goodput_unix_) {
    goodput_unix_ = record.time_unix;
    goodput = *record.productive_seconds / *record.run_seconds;
  }
  if (record.tag != StepTag::train) {
    ++left_out[record.tag];
    return;
  }
  timeline.add(record);
  add_step(ranks[record.rank], record);
  add_step(all, record);
  const Seconds time = record.step_seconds;
  if (record.model_flops)
    model_flops.add(static_cast<double>(record.model_flops->value) / record.devices, time);
  tokens.add(real(record.tokens), time);
  samples.add(real(record.samples), time);
  if (record.monitor_seconds) watching.add(record.monitor_seconds->value, time);
  for (std::size_t i = 0; i < dtype_count; ++i)
    flops_by_dtype[i] += record.hardware_flops_by_dtype[i];
  if (record.hardware_flops) hardware_flops += record.hardware_flops->value;
  if (record.recompute_flops) recompute_flops += record.recompute_flops->value;
  ++sources[record.flops_source];
  if (record.attention_pairs != AttentionPairs::none) attention_pairs = record.attention_pairs;
}

}  // namespace flopmeter
