// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/sink.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace flopmeter {

/// The run as Prometheus sees it: counters since the start and the newest gauges.  Not thread-safe.
class PrometheusText {
 public:
  explicit PrometheusText(RunInfo run) : run_(std::move(run)) {}

  void add(const StepRecord& record);
  /// The text exposition format, version 0.0.4.  A series that is not known is left out.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::array<double, 12> bounds = {
      0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60};

  RunInfo run_;
  std::optional<StepRecord> last_;
  std::uint64_t steps_ = 0;
  double seconds_ = 0;
  WideInt tokens_ = 0, samples_ = 0, flops_ = 0, replicated_ = 0;
  bool has_tokens_ = false, has_samples_ = false, has_flops_ = false, has_replicated_ = false;
  std::array<std::uint64_t, bounds.size()> buckets_{};  ///< cumulative, as the format wants them
  std::array<double, phase_count> phases_{};
  std::array<bool, phase_count> has_phase_{};
};

}  // namespace flopmeter
