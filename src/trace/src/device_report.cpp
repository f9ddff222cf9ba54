// SPDX-License-Identifier: Apache-2.0
//
// Combines the parts of the analysis, one report per device.
#include "collectives.h"
#include "device_peaks.h"
#include "idle.h"
#include "intervals.h"
#include "links.h"
#include "modules.h"
#include "notes.h"
#include "op_flops.h"
#include "other_work.h"
#include "profile.h"
#include "step_records.h"
#include "step_timeline.h"
#include "steps.h"
#include "trace_findings.h"
#include "work.h"

#include <flopmeter/trace/trace_report.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

namespace flopmeter {
namespace {

using Indexes = std::vector<std::uint32_t>;

/// Device events by device, each sorted by start.
std::map<std::int32_t, Indexes> events_by_device(const Trace& trace) {
  std::map<std::int32_t, Indexes> devices;
  for (std::uint32_t i = 0; i < trace.device_events.size(); ++i)
    devices[trace.device_events[i].device].push_back(i);
  for (auto& [device, events] : devices) {
    std::stable_sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
      return trace.device_events[a].start < trace.device_events[b].start;
    });
  }
  return devices;
}

/// The device of each counted operator: that of its kernels, else the first one.
std::vector<std::int32_t> devices_of_ops(const Trace& trace,
                                         const OpFlops& flops,
                                         std::span<const Work> work,
                                         std::int32_t first) {
  std::vector<std::int32_t> devices(flops.ops.size(), first);
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i].counted != no_event) devices[work[i].counted] = trace.device_events[i].device;
  }
  return devices;
}

void add(TraceFlops& sum, const CountedOp& op) {
  const auto dtype = static_cast<std::size_t>(op.dtype);
  sum.model += op.model;
  sum.hardware += op.executed;
  if (op.recompute) sum.recompute += op.executed;
  sum.model_by_dtype[dtype] += op.model.value;
  if (op.optimizer) {
    sum.optimizer += op.model;
    sum.optimizer_by_dtype[dtype] += op.model.value;
  }
  sum.hardware_by_dtype[dtype] += op.executed.value;
}

void count_device_events(const Trace& trace,
                         const Links& links,
                         const Indexes& events,
                         DeviceReport& report) {
  for (const std::uint32_t index : events) {
    switch (trace.device_events[index].kind) {
      case DeviceClass::compute:
      case DeviceClass::communication:
        ++report.kernels;
        break;
      case DeviceClass::memcpy:
        ++report.memcpys;
        break;
      case DeviceClass::memset:
        ++report.memsets;
        break;
    }
    if (links.is_carried_over(trace, index)) ++report.carried_over;
  }
}

TimeWindow span_of(const Trace& trace, const Indexes& events) {
  if (events.empty()) return {};
  TimeWindow span{.start = trace.device_events[events.front()].start};
  span.end = span.start;
  for (const std::uint32_t index : events)
    span.end = std::max(span.end, trace.device_events[index].end());
  return span;
}

/// The first device step may begin before the first device work.
TraceNs first_moment(std::span<const TraceStep> steps, TimeWindow span) {
  for (const TraceStep& step : steps) {
    if (step.device) return std::min(step.device->start, span.start);
  }
  return span.start;
}

/// Coverage and the largest operators without a FLOP cost.
void find_unsupported(const Trace& trace,
                      const Indexes& events,
                      std::span<const Work> work,
                      DeviceReport& report) {
  TraceNs compute = 0;
  TraceNs counted = 0;
  std::map<TextId, UnsupportedOp> unsupported;
  for (const std::uint32_t index : events) {
    const DeviceEvent& event = trace.device_events[index];
    if (event.kind != DeviceClass::compute) continue;
    compute += event.duration;
    if (work[index].kind == OpKind::compute) counted += event.duration;
    if (work[index].kind != OpKind::unknown) continue;
    UnsupportedOp& op = unsupported[work[index].name];
    ++op.calls;
    op.time += event.duration;
  }
  if (compute > 0) report.coverage = static_cast<double>(counted) / static_cast<double>(compute);
  for (auto& [name, op] : unsupported) {
    op.op = trace.text(name);
    report.unsupported.push_back(std::move(op));
  }
  std::stable_sort(report.unsupported.begin(),
                   report.unsupported.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
}

/// Coverage of a trace without device work: time of counted operators among all operators' own
/// time.
void find_host_coverage(DeviceReport& report) {
  double all = 0;
  double counted = 0;
  for (const OpProfile& profile : report.profiles) {
    for (const OpProfileRow& row : profile.rows) {
      if (row.name.starts_with("autograd::engine")) continue;
      all += row.self.value;
      if (row.kind == OpKind::compute) counted += row.self.value;
    }
  }
  if (all > 0) report.coverage = counted / all;
}

/// The time of each step.
void report_steps(const Trace& trace,
                  const Indexes& events,
                  const std::vector<TraceStep>& steps,
                  const std::vector<ExplainedInterval>& idle,
                  DeviceReport& report) {
  std::span<const std::uint32_t> left = events;  // without the first ones, which ended before
  TraceNs moment = report.span.start;
  for (const TraceStep& step : steps) {
    TraceStepReport row{.name = step.name, .host = step.host, .device = step.device};
    if (step.device) {
      if (step.device->start < moment) left = events;
      moment = step.device->start;
      while (!left.empty() && trace.device_events[left.front()].end() <= moment)
        left = left.subspan(1);
      row.split = split_time(trace.device_events, left, *step.device);
      row.idle = idle_within(idle, *step.device, row.split.idle);
    }
    report.steps.push_back(std::move(row));
  }
}

/// The FLOPs of the operators that ran on `device`, in all and by step.
void report_flops(const Trace& trace,
                  const OpFlops& flops,
                  const std::vector<std::int32_t>& op_devices,
                  const std::vector<TraceStep>& steps,
                  std::int32_t device,
                  DeviceReport& report) {
  report.flops.emplace();
  for (TraceStepReport& row : report.steps) row.flops.emplace();
  for (std::size_t i = 0; i < flops.ops.size(); ++i) {
    if (op_devices[i] != device) continue;
    add(*report.flops, flops.ops[i]);
    const TraceNs start = trace.host_events[flops.ops[i].event].start;
    if (const std::uint32_t step = step_at(steps, start); step != no_step)
      add(*report.steps[step].flops, flops.ops[i]);
  }
}

}  // namespace

std::vector<DeviceReport> report_devices(Trace& trace, const TraceReportOptions& options) {
  const Links links = link_events(trace);
  const OpFlops flops = count_flops(trace, links);
  const std::vector<Work> work = classify_work(trace, links, flops);
  const std::vector<TraceStep> host_steps = find_steps(trace);
  std::map<std::int32_t, Indexes> devices = events_by_device(trace);
  const bool on_host = devices.empty();
  if (on_host) devices[0] = {};
  const std::vector<std::int32_t> op_devices =
      devices_of_ops(trace, flops, work, devices.begin()->first);

  const std::vector<OtherWork> other_work = summarize_other_work(trace);

  std::vector<DeviceReport> reports;
  for (const auto& [device, events] : devices) {
    DeviceReport report{.file = trace.file,
                        .rank = trace.rank,
                        .world_size = trace.world_size,
                        .base_time = trace.base_time,
                        .events = trace.events,
                        .skipped_events = trace.skipped_events};
    if (!on_host) report.device_index = device;
    report.device_name = device_name(trace, report.device_index);
    report.formula = options.formula;
    report.peaks = options.peaks ? options.peaks : known_peaks(report.device_name);
    count_device_events(trace, links, events, report);
    report.span = span_of(trace, events);
    report.split = split_time(trace.device_events, events, report.span);
    std::vector<TraceStep> steps = host_steps;
    find_device_steps(trace, links, events, steps);
    const TraceNs first = first_moment(steps, report.span);
    const std::vector<ExplainedInterval> idle =
        explain_idle(trace, links, find_idle(trace.device_events, events, first));
    report.idle = idle_within(idle, report.span, report.split.idle);
    report.modules = times_by_module(trace, links, flops, events);
    report.other_work = other_work;
    report.collectives = summarize_collectives(trace, events);
    report.collective_calls = list_collectives(trace, events, report.collectives);
    report_steps(trace, events, steps, idle, report);
    if (trace.has_shapes) report_flops(trace, flops, op_devices, steps, device, report);
    make_profiles(trace, links, flops, work, steps, events, report);
    if (on_host) {
      find_host_coverage(report);
    } else if (links.any_launch) {
      find_unsupported(trace, events, work, report);
    }
    make_records(trace, report);
    report.timeline = make_timeline(trace, events, report);
    report.findings = find_in_trace({.trace = trace,
                                     .links = links,
                                     .flops = flops,
                                     .work = work,
                                     .events = events,
                                     .report = report});
    add_notes(trace, links, flops, steps, report);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace flopmeter
