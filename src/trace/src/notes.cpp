// SPDX-License-Identifier: Apache-2.0
#include "notes.h"

#include <flopmeter/core/text.h>
#include <flopmeter/core/utilization.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// Why a device has no MFU, and a recommendation.
std::string unknown_device(const Trace& trace, const DeviceReport& report) {
  if (report.device_name)
    return "no MFU: device '" + printable(*report.device_name) +
           "' is not in the catalog; name one with --device, or its peak with --peak";
  std::string text = "no MFU: the trace does not name its device; name it with --device";
  if (!trace.devices.empty() && trace.devices.front().multiprocessors) {
    const TraceDevice& device = trace.devices.front();
    text += " (it has " + std::to_string(*device.multiprocessors) + " multiprocessors";
    if (device.memory_bytes)
      text += " and " + si(static_cast<double>(*device.memory_bytes)) + "B of memory";
    text += ")";
  }
  return text;
}

void note_damage(const Trace& trace, DeviceReport& report) {
  if (trace.truncated)
    report.notes.emplace_back(
        "the file is damaged or ends early: figures cover what could be read");
  if (trace.skipped_events > 0)
    report.notes.push_back("skipped " + grouped(trace.skipped_events) +
                           " damaged events or events with impossible times");
}

void note_steps(std::span<const TraceStep> steps, DeviceReport& report) {
  if (steps.empty())
    report.notes.emplace_back(
        "no ProfilerStep in the trace: the whole trace is one window; call profiler.step() after "
        "each step");
  if (std::any_of(steps.begin(), steps.end(), [](const TraceStep& s) { return s.overlapped; }))
    report.notes.emplace_back("steps overlap on the host: each operator counts for the later one");
}

void note_links(const Trace& trace,
                const Links& links,
                const OpFlops& flops,
                DeviceReport& report) {
  if (!report.device_index) return;
  if (flops.unchecked)
    report.notes.emplace_back(
        "no kernel is linked to a launch: coverage and idle causes are unknown, and operators that "
        "did not run may be counted");
  if (report.carried_over > 0)
    report.notes.push_back(grouped(report.carried_over) +
                           " device events were launched before the recording began");
  TraceNs all = 0;
  TraceNs without = 0;
  for (std::size_t i = 0; i < trace.device_events.size(); ++i) {
    if (trace.device_events[i].device != *report.device_index) continue;
    all += trace.device_events[i].duration;
    if (links.op[i] == no_event) without += trace.device_events[i].duration;
  }
  constexpr double worth_a_note = 0.02;
  const double share = all > 0 ? static_cast<double>(without) / static_cast<double>(all) : 0;
  if (links.any_launch && share > worth_a_note)
    report.notes.push_back(percent(share) +
                           " of the device time has no operator (graph launches, "
                           "libraries, or work from before the recording)");
}

void note_flops(const OpFlops& flops, DeviceReport& report) {
  if (report.formula) {
    report.notes.push_back(
        "MFU by the formula of " + printable(report.formula->model) + ", not by the operators of " +
        "the trace: " + si(static_cast<double>(report.formula->flops.value)) + " FLOPs in " +
        std::string{to_string(report.formula->dtype)} + " for " + grouped(report.formula->tokens) +
        " tokens in sequences of " + grouped(report.formula->seq_len) +
        (report.steps.empty() ? " in the whole trace" : " per step and device"));
  }
  if (!report.flops) {
    report.notes.push_back(std::string{report.formula ? "no counted FLOPs" : "no FLOPs"} +
                           ": the trace has no shapes; record it with record_shapes=True and "
                           "ProfilerActivity.CPU");
    return;
  }
  if (!flops.failed.empty())
    report.notes.push_back(grouped(static_cast<WideInt>(flops.failed.size())) +
                           " operator calls have a FLOP cost, but the trace does not state the "
                           "arguments it depends on");
  if (report.flops->optimizer.value > 0)
    report.notes.push_back(si(static_cast<double>(report.flops->optimizer.value)) +
                           " FLOPs are the optimizer's own matmuls, which MFU excludes");
  const bool bounded = std::any_of(flops.ops.begin(), flops.ops.end(), [](const CountedOp& op) {
    return op.pairs == AttentionPairs::full || op.pairs == AttentionPairs::unknown;
  });
  if (bounded)
    report.notes.emplace_back(
        "attention with a mask tensor or packed sequences is counted in full: an upper bound");
}

std::array<WideInt, dtype_count> useful_by_dtype(const DeviceReport& report) {
  if (!report.formula) return report.flops->useful_by_dtype();
  std::array<WideInt, dtype_count> flops{};
  flops[static_cast<std::size_t>(report.formula->dtype)] = report.formula->flops.value;
  return flops;
}

void note_mfu(const Trace& trace, DeviceReport& report) {
  if ((!report.flops && !report.formula) || !report.device_index) return;
  if (!report.peaks) {
    report.notes.push_back(unknown_device(trace, report));
  } else if (const auto dtype = Utilization{*report.peaks}.missing_peak(useful_by_dtype(report))) {
    report.notes.push_back(
        *dtype == Dtype::other
            ? "no MFU: neither the trace nor its kernels' names state the dtype of some matmuls"
            : "no MFU: no " + std::string{to_string(*dtype)} + " peak is known for " +
                  (report.peaks->device.empty() ? "the device" : report.peaks->device));
  } else if (report.mfu && !report.formula && !report.unsupported.empty()) {
    TraceNs unsupported = 0;
    for (const UnsupportedOp& op : report.unsupported) unsupported += op.time;
    const TraceNs compute = report.split.total[static_cast<std::size_t>(DeviceClass::compute)];
    constexpr double worth_a_note = 0.02;
    const double share =
        compute > 0 ? static_cast<double>(unsupported) / static_cast<double>(compute) : 0;
    if (share > worth_a_note)
      report.notes.push_back("MFU is a lower bound: " + percent(share) +
                             " of the compute time is in operators without a FLOP cost");
  }
}

void note_other_work(DeviceReport& report) {
  for (const OtherWork& work : report.other_work) {
    report.notes.push_back(grouped(work.events) + " events of category '" +
                           printable(work.category) + "', process " + printable(work.process) +
                           ", are not in the figures of the device: it is not known what their "
                           "times mean for its compute, copies, and idle time");
  }
}

}  // namespace

void add_notes(const Trace& trace,
               const Links& links,
               const OpFlops& flops,
               std::span<const TraceStep> steps,
               DeviceReport& report) {
  note_damage(trace, report);
  if (!report.device_index)
    report.notes.push_back("no device work " +
                           std::string{report.other_work.empty() ? "" : "of a known category "} +
                           "in the trace: steps are measured on the host");
  note_steps(steps, report);
  note_links(trace, links, flops, report);
  note_flops(flops, report);
  note_mfu(trace, report);
  note_other_work(report);
}

}  // namespace flopmeter
