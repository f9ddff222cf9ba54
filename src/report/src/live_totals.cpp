// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/live_totals.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// What an earlier step still counts when one more has come: about the last ten steps show.
constexpr double fade = 0.9;
constexpr std::size_t most_stretches = 1000;

void scale(Throughput& rate) {
  rate.amount *= fade;
  rate.seconds *= fade;
}

void scale(RankUtilization& share) {
  share.at_peak *= fade;
  share.seconds *= fade;
}

void join(Throughput& into, const Throughput& from) {
  into.amount += from.amount;
  into.seconds += from.seconds;
}

std::optional<double> real(const std::optional<std::int64_t>& value) {
  return value ? std::optional{static_cast<double>(*value)} : std::nullopt;
}

}  // namespace

void RecentSteps::add(const StepRecord& record) {
  scale(mfu);
  scale(hfu);
  scale(flops);
  scale(tokens);
  scale(samples);
  weight = weight * fade + 1;
  seconds = seconds * fade + record.step_seconds.value;
  mfu.add(record.mfu, record.step_seconds);
  hfu.add(record.hfu, record.step_seconds);
  if (record.model_flops)
    flops.add(static_cast<double>(record.model_flops->value) / record.devices, record.step_seconds);
  tokens.add(real(record.tokens), record.step_seconds);
  samples.add(real(record.samples), record.step_seconds);
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (phases[i] || record.phases[i])
      phases[i] = phases[i].value_or(0) * fade + record.phases[i].value_or(Seconds{}).value;
  }
  last_step = record.step;
  last_unix = record.time_unix;
}

double RecentSteps::own_seconds() const {
  const double waited = phases[static_cast<std::size_t>(Phase::communication)].value_or(0);
  return weight > 0 ? (seconds - waited) / weight : 0;
}

LiveTotals::LiveTotals() : timeline(live_curves(), most_stretches) {}

void LiveTotals::add(const StepRecord& record) {
  if (record.tag != StepTag::train) return;
  timeline.add(record);
  ranks[record.rank].add(record);
}

RecentSteps LiveTotals::all() const {
  RecentSteps sum;
  for (const auto& [rank, recent] : ranks) {
    sum.last_step = std::max(sum.last_step, recent.last_step);
    sum.last_unix = std::max(sum.last_unix, recent.last_unix);
    sum.weight += recent.weight;
    sum.seconds += recent.seconds;
    sum.mfu.add(recent.mfu);
    sum.hfu.add(recent.hfu);
    join(sum.flops, recent.flops);
    join(sum.tokens, recent.tokens);
    join(sum.samples, recent.samples);
    for (std::size_t i = 0; i < phase_count; ++i) {
      if (recent.phases[i]) sum.phases[i] = sum.phases[i].value_or(0) + *recent.phases[i];
    }
  }
  return sum;
}

std::span<const std::string_view> live_curves() {
  static constexpr std::array<std::string_view, 4> names = {
      "mfu", "tflops_per_device", "tokens_per_second", "step_seconds"};
  return names;
}

}  // namespace flopmeter
