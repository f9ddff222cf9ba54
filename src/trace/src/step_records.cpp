// SPDX-License-Identifier: Apache-2.0
#include "step_records.h"

#include "profile.h"

#include <flopmeter/core/step_totals.h>
#include <flopmeter/core/text.h>
#include <flopmeter/core/utilization.h>

#include <map>
#include <numeric>

namespace flopmeter {
namespace {

Seconds seconds(TraceNs time) {
  return {static_cast<double>(time) * 1e-9};
}

std::int64_t step_number(std::string_view name, std::size_t index) {
  const std::size_t at = name.find('#');
  const auto number = at == std::string_view::npos ? std::nullopt : parse_int(name.substr(at + 1));
  return number.value_or(static_cast<long long>(index));
}

/// The interval that a step is measured by: the device's, or the host's if no device worked.
std::optional<TimeWindow> measured(const DeviceReport& report, const TraceStepReport& step) {
  return report.device_index ? step.device : std::optional{step.host};
}

void set_counted(const TraceFlops& flops, StepRecord& record) {
  record.model_flops = flops.useful();
  record.hardware_flops = flops.hardware;
  record.recompute_flops = flops.recompute;
  const auto useful = flops.useful_by_dtype();
  for (std::size_t i = 0; i < dtype_count; ++i) {
    record.model_flops_by_dtype[i] = static_cast<std::uint64_t>(useful[i]);
    record.hardware_flops_by_dtype[i] = static_cast<std::uint64_t>(flops.hardware_by_dtype[i]);
  }
  record.flops_source = FlopsProvenance::counted;
}

void set_formula(const StepFormula& formula, StepRecord& record) {
  record.model_flops = formula.flops;
  record.model_flops_by_dtype = {};
  record.model_flops_by_dtype[static_cast<std::size_t>(formula.dtype)] =
      static_cast<std::uint64_t>(formula.flops.value);
  record.flops_source = FlopsProvenance::estimate;
  record.tokens = formula.tokens;
}

StepRecord record_of(const Trace& trace,
                     const DeviceReport& report,
                     TimeWindow time,
                     const TimeSplit& split,
                     const IdleTimes& idle,
                     const std::optional<TraceFlops>& flops) {
  StepRecord record;
  record.rank = report.rank.value_or(0);
  record.world_size = report.world_size.value_or(1);
  record.time_unix = static_cast<double>(trace.base_time + time.end) * 1e-9;
  record.step_seconds = seconds(time.length());
  record.time_source = report.device_index ? TimeSource::device : TimeSource::host;
  if (flops) set_counted(*flops, record);
  if (report.formula) set_formula(*report.formula, record);
  if (report.device_index) {
    const auto communication = static_cast<std::size_t>(DeviceClass::communication);
    const auto phase = [&](Phase one) -> auto& {
      return record.phases[static_cast<std::size_t>(one)];
    };
    phase(Phase::communication) = seconds(split.exposed[communication]);
    phase(Phase::data) = seconds(idle.time[static_cast<std::size_t>(IdleCause::data_loading)]);
    record.overlapped_communication =
        seconds(split.total[communication] - split.exposed[communication]);
  }
  if (report.peaks) Utilization{*report.peaks}.finish(record);
  return record;
}

/// If nothing was counted, MFU is unknown, not 0.
std::optional<double> mfu_of(const StepTotals& totals) {
  return totals.ideal.amount > 0 ? totals.mfu() : std::nullopt;
}

}  // namespace

std::array<WideInt, dtype_count> TraceFlops::useful_by_dtype() const {
  std::array<WideInt, dtype_count> useful = model_by_dtype;
  for (std::size_t i = 0; i < dtype_count; ++i) useful[i] -= optimizer_by_dtype[i];
  return useful;
}

void make_profiles(const Trace& trace,
                   const Links& links,
                   const OpFlops& flops,
                   std::span<const Work> work,
                   std::span<const TraceStep> steps,
                   std::span<const std::uint32_t> device_events,
                   DeviceReport& report) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_step;
  if (report.device_index) {
    for (const std::uint32_t index : device_events) {
      const std::uint32_t launch = links.launch[index];
      if (steps.empty()) {
        by_step[0].push_back(index);
      } else if (launch != no_event) {
        by_step[step_at(steps, trace.host_events[launch].start)].push_back(index);
      }
    }
  } else {
    for (std::uint32_t i = 0; i < trace.host_events.size(); ++i)
      by_step[steps.empty() ? 0 : step_at(steps, trace.host_events[i].start)].push_back(i);
  }
  by_step.erase(no_step);
  for (const auto& [step, events] : by_step) {
    OpProfile profile = report.device_index ? profile_device(trace, flops, work, events)
                                            : profile_host(trace, links, flops, events);
    TimeWindow time = report.span;
    if (!steps.empty()) {
      profile.step = step_number(steps[step].name, step);
      time = report.device_index && steps[step].device ? *steps[step].device : steps[step].host;
    }
    profile.wall = seconds(time.length());
    profile.time_unix = static_cast<double>(trace.base_time + time.end) * 1e-9;
    report.profiles.push_back(std::move(profile));
  }
}

void make_records(const Trace& trace, DeviceReport& report) {
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    TraceStepReport& step = report.steps[i];
    const std::optional<TimeWindow> time = measured(report, step);
    if (!time) continue;
    StepRecord record = record_of(trace, report, *time, step.split, step.idle, step.flops);
    record.step = step_number(step.name, i);
    record.process_step = static_cast<std::int64_t>(i);
    step.mfu = mfu_of(StepTotals::of({&record, 1}));
    report.records.push_back(record);
  }
  if (report.steps.empty() && report.device_index)
    report.records.push_back(
        record_of(trace, report, report.span, report.split, report.idle, report.flops));
  report.mfu = mfu_of(StepTotals::of(report.records));
}

}  // namespace flopmeter
