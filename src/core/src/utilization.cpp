// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/utilization.h>

namespace flopmeter {
namespace {

std::array<WideInt, dtype_count> widen(const std::array<std::uint64_t, dtype_count>& flops) {
  std::array<WideInt, dtype_count> wide{};
  for (std::size_t i = 0; i < dtype_count; ++i) wide[i] = flops[i];
  return wide;
}

}  // namespace

std::optional<Dtype> Utilization::missing_peak(std::span<const WideInt, dtype_count> flops) const {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (flops[i] != 0 && !peaks_.peaks[i]) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::optional<Seconds> Utilization::ideal_time(std::span<const WideInt, dtype_count> flops) const {
  if (missing_peak(flops)) return std::nullopt;
  Seconds ideal;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (flops[i] != 0) ideal = ideal + Flops{flops[i]} / *peaks_.peaks[i];
  }
  return ideal;
}

std::optional<double> Utilization::utilization(std::span<const WideInt, dtype_count> flops,
                                               Seconds time,
                                               int devices) const {
  const auto ideal = ideal_time(flops);
  if (!ideal || !(time.value > 0) || devices <= 0) return std::nullopt;
  return *ideal / time / devices;
}

void Utilization::finish(StepRecord& record) const {
  record.ideal_seconds.reset();
  record.mfu.reset();
  record.hfu.reset();
  if (record.model_flops && record.devices > 0) {
    if (const auto ideal = ideal_time(widen(record.model_flops_by_dtype)))
      record.ideal_seconds = Seconds{ideal->value / record.devices};
  }
  if (record.time_source == TimeSource::unknown) return;
  if (record.model_flops) {
    record.mfu =
        utilization(widen(record.model_flops_by_dtype), record.step_seconds, record.devices);
  }
  if (record.hardware_flops) {
    record.hfu =
        utilization(widen(record.hardware_flops_by_dtype), record.step_seconds, record.devices);
  }
}

}  // namespace flopmeter
