// SPDX-License-Identifier: Apache-2.0
//
// RunOverview: what a report says of a run, gathered record by record in bounded memory.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/phase.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/report/timeline.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>

namespace flopmeter {

/// A utilization over many steps: its mean by time.
struct RankUtilization {
  double at_peak = 0;  ///< seconds that the work would have taken at peak
  double seconds = 0;  ///< that it took

  void add(const std::optional<double>& value, Seconds time);
  void add(const RankUtilization& other);
  [[nodiscard]] std::optional<double> value() const;
};

/// The train steps of one rank.
struct RankTotals {
  std::int64_t steps = 0;
  std::int64_t last_step = 0;
  double first_unix = 0;  ///< start of the first step
  double last_unix = 0;   ///< end of the last
  double seconds = 0;     ///< all steps together
  RankUtilization mfu;
  RankUtilization hfu;
  std::optional<double> mfu_now;  ///< over the last log interval
  std::array<std::optional<double>, phase_count> phases{};
  std::optional<std::int64_t> memory_peak_bytes;  ///< of the device where there is one
  std::uint64_t dropped_records = 0;

  /// Share of its time in one phase; empty where no step tells.
  [[nodiscard]] std::optional<double> share(Phase phase) const;
  /// Mean seconds of a step without waiting for others.
  [[nodiscard]] double own_seconds() const;
};

/// An amount and the time in which it was done.
struct Throughput {
  double amount = 0;
  double seconds = 0;

  void add(const std::optional<double>& value, Seconds time);
  [[nodiscard]] std::optional<double> per_second() const;
};

/// Takes the records of all ranks in any order.  Averages leave out all but train steps.
class RunOverview {
 public:
  RunOverview();

  void add(const StepRecord& record);

  Timeline timeline;
  std::map<int, RankTotals> ranks;
  RankTotals all;  ///< all ranks together; `seconds` are those of all of them
  Throughput model_flops;
  Throughput tokens;
  Throughput samples;
  Throughput watching;  ///< seconds that watching cost the training threads
  std::array<WideInt, dtype_count> flops_by_dtype{};
  WideInt hardware_flops = 0;
  WideInt recompute_flops = 0;
  std::map<FlopsProvenance, std::int64_t> sources;  ///< train steps by where their FLOPs came from
  std::map<StepTag, std::int64_t> left_out;     ///< other steps
  std::optional<AttentionPairs> attention_pairs;
  std::optional<double> goodput;  ///< as the latest record tells

 private:
  double goodput_unix_ = 0;
};

}  // namespace flopmeter
