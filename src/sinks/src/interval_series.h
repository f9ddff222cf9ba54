// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard tags that are not fields of the record.  Their names are those of other tools.
#pragma once

#include "interval_rows.h"

#include <flopmeter/sinks/sinks.h>

#include <array>
#include <optional>

namespace flopmeter {

struct IntervalSeries {
  OutputSeries series;
  std::optional<double> (*read)(const IntervalRow& row);
};

inline constexpr auto interval_series = std::to_array<IntervalSeries>({
    {{"performance/tflops_total", Unit::teraflops_per_second, "model TFLOP/s of all devices"},
     [](auto& row) { return row.tflops_total; }},
    {{"performance/samples_per_second", Unit::per_second, "samples per second, all ranks"},
     [](auto& row) { return row.samples_per_second; }},
    {{"performance/tokens_per_second", Unit::per_second, "tokens per second, all ranks"},
     [](auto& row) { return row.tokens_per_second; }},
    {{"performance/avg_step_time_ms", Unit::none, "mean step time in milliseconds"},
     [](auto& row) { return std::optional{row.step_seconds.value * 1e3}; }},
    {{"perf/mfu_percent", Unit::none, "model FLOPs utilization in percent"},
     [](auto& row) { return row.mfu ? std::optional{*row.mfu * 100} : std::nullopt; }},
    {{"perf/mfu_run", Unit::ratio, "model FLOPs utilization over the run"},
     [](auto& row) { return row.mfu_run; }},
    {{"perf/steps_per_second", Unit::per_second, "steps per second"},
     [](auto& row) {
       const double seconds = row.step_seconds.value;
       return seconds > 0 ? std::optional{1 / seconds} : std::nullopt;
     }},
    {{"perf/tokens_per_second", Unit::per_second, "tokens per second, all ranks"},
     [](auto& row) { return row.tokens_per_second; }},
    {{"perf/samples_per_second", Unit::per_second, "samples per second, all ranks"},
     [](auto& row) { return row.samples_per_second; }},
    {{"memory/current_gb", Unit::none, "memory in use, in 2^30 bytes"},
     [](auto& row) { return row.memory_gb; }},
    {{"memory/peak_gb", Unit::none, "highest memory so far, in 2^30 bytes"},
     [](auto& row) { return row.memory_peak_gb; }},
});

}  // namespace flopmeter
