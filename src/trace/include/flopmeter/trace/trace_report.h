// SPDX-License-Identifier: Apache-2.0
//
// The analysis of a trace per device: where its time went, the FLOPs of its steps, and its
// collectives.  The operator profile and the step records are those of a live run, so that the same
// analysis reads both.
#pragma once

#include <flopmeter/core/finding.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/op_profile.h>
#include <flopmeter/core/peak_table.h>
#include <flopmeter/core/step_record.h>
#include <flopmeter/core/step_timeline.h>
#include <flopmeter/core/units.h>
#include <flopmeter/trace/trace.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// An interval of a trace's clock.
struct TimeWindow {
  TraceNs start = 0;
  TraceNs end = 0;
  [[nodiscard]] TraceNs length() const { return end - start; }
};

/// Where the time of a window went.  Kernels of several streams overlap; every nanosecond belongs
/// to the first class of DeviceClass that runs in it, or to `idle`.  `exposed` and `idle` sum to
/// the window.
struct TimeSplit {
  TraceNs window = 0;
  std::array<TraceNs, device_class_count> total{};  ///< by DeviceClass, overlapped or not
  std::array<TraceNs, device_class_count> exposed{};
  TraceNs idle = 0;
};

/// Why a device was idle, by the launch of the work that ended the idle time.
enum class IdleCause : std::uint8_t {
  data_loading,      ///< the launching thread waited for its data loader
  synchronization,   ///< it waited for the device
  allocation,        ///< it allocated or freed device memory
  launch,            ///< it had not reached the launch: Python and the dispatcher
  launch_in_flight,  ///< the launch had begun
  queued,            ///< the launch was done: a dependency, or the device's own latency
  unknown,           ///< the launch is not in the trace
};
inline constexpr std::size_t idle_cause_count = 7;
std::string_view to_string(IdleCause cause);

/// Idle time by cause; sums to the idle time of its window.
struct IdleTimes {
  std::array<TraceNs, idle_cause_count> time{};
  std::array<std::int64_t, idle_cause_count> intervals{};
};

/// Exact integers.
struct TraceFlops {
  Flops model;      ///< of all operators but recomputed ones
  Flops optimizer;  ///< part of `model`: the optimizer's own matmuls, which MFU excludes
  Flops hardware;
  Flops recompute;  ///< part of `hardware`
  std::array<WideInt, dtype_count> model_by_dtype{};
  std::array<WideInt, dtype_count> optimizer_by_dtype{};
  std::array<WideInt, dtype_count> hardware_by_dtype{};

  /// The FLOPs that MFU counts.
  [[nodiscard]] Flops useful() const { return model - optimizer; }
  [[nodiscard]] std::array<WideInt, dtype_count> useful_by_dtype() const;
};

/// The model FLOPs of one step on one device by the formula of its model, instead of by the
/// operators of the trace.
struct StepFormula {
  std::string model;
  std::int64_t tokens = 0;  ///< of one step on one device
  std::int64_t seq_len = 0;
  Flops flops;
  Dtype dtype = Dtype::bf16;
};

struct TraceStepReport {
  std::string name;  ///< "ProfilerStep#5"
  TimeWindow host;
  /// From the last work of the steps before to the last work that the step launched; empty if it
  /// launched none.
  std::optional<TimeWindow> device;
  std::optional<TraceFlops> flops;  ///< of its operators; empty if the trace has no shapes
  std::optional<double> mfu;
  TimeSplit split;  ///< of the device's interval
  IdleTimes idle;
  TraceNs collective_wait = 0;  ///< part of the interval in which collectives wait for other ranks
};

struct CollectiveSummary {
  std::string kind;  ///< "allreduce"
  std::string dtype;
  std::int64_t count = 0;
  std::optional<Bytes> bytes;  ///< of one call: its larger side
  std::optional<std::int64_t> group_size;
  TraceNs time = 0;  ///< of all calls
  /// The sum of each call's shortest time among its ranks, which is without waiting; empty unless
  /// all calls were compared.
  std::optional<TraceNs> transfer;
  /// Bytes that each link carries per second, as nccl-tests defines it, over `transfer`, else over
  /// `time`, which includes waiting.
  std::optional<double> bus_bytes_per_second;
};

struct UnsupportedOp {
  std::string op;
  std::int64_t calls = 0;
  TraceNs time = 0;
};

/// Events of one category and process (or device) that the analysis does not interpret.  Times are
/// as recorded; whether they overlap compute, and what launched them, is not known.
struct OtherWork {
  std::string category;  ///< "mtia_ccp_events"
  std::string process;
  std::int64_t events = 0;
  TraceNs span = 0;                    ///< first to last event
  TraceNs busy = 0;                    ///< in which at least one event runs, other than waits
  std::vector<UnsupportedOp> longest;  ///< by name
};

/// The work that a module of the model launched itself, without the modules inside it.
struct ModuleTime {
  std::string module;    ///< "GPT/Block/Linear": classes from the outermost one on
  TraceNs forward = 0;   ///< of the device, else of the host's operators
  TraceNs backward = 0;  ///
  Flops flops;           ///< executed
};

/// A collective on one rank, for comparison with the same one on other ranks.
struct CollectiveCall {
  std::string group;
  std::string kind;
  std::int64_t sequence = no_id;
  std::size_t size = 0;  ///< index into DeviceReport::collectives
  TimeWindow time;       ///< by the clock of the trace
};

/// One device of one file.
struct DeviceReport {
  std::string file;
  std::optional<int> rank;
  std::optional<int> world_size;
  TraceNs base_time = 0;  ///< added to a time of the trace to get nanoseconds since 1970
  std::optional<std::int32_t> device_index;  ///< empty if the trace has no device work
  std::optional<std::string> device_name;
  std::optional<PeakTable> peaks;  ///< empty if the device is not known

  std::int64_t events = 0;
  std::int64_t skipped_events = 0;
  std::int64_t kernels = 0;
  std::int64_t memcpys = 0;
  std::int64_t memsets = 0;
  std::int64_t carried_over = 0;  ///< device events launched before the recording began

  std::vector<TraceStepReport> steps;
  TimeWindow span;  ///< first to last device work
  TimeSplit split;
  IdleTimes idle;
  std::optional<TraceFlops> flops;  ///< of all executed operators; empty without shapes
  std::optional<double> coverage;   ///< device time of counted operators / compute time
  std::vector<UnsupportedOp> unsupported;
  std::vector<OtherWork> other_work;  ///< of the whole file, busiest first
  std::vector<ModuleTime> modules;    ///< longest first; empty without stacks and annotations
  std::vector<CollectiveSummary> collectives;
  std::vector<CollectiveCall> collective_calls;
  /// Part of `span` in which collectives wait for other ranks; empty if ranks are not compared.
  std::optional<TraceNs> collective_wait;
  std::optional<double> mfu;           ///< of the steps, or of `span` if there are none
  std::optional<StepFormula> formula;  ///< the source of MFU, if not `flops`

  /// With evidence that only a trace has, largest first; named after the rules of a run where they
  /// mean the same.
  std::vector<Finding> findings;
  std::vector<OpProfile> profiles;  ///< one per step, or one of the whole trace if it has no steps
  std::vector<StepRecord> records;  ///< likewise
  StepTimeline timeline;            ///< of the step of median length
  std::vector<std::string> notes;   ///< skipped and unknown data, one sentence each
};

/// The rank that the others wait for.
struct TraceStraggler {
  int rank = 0;
  Seconds wait;  ///< that the other ranks spent waiting, on average
};

struct TraceReport {
  std::vector<DeviceReport> ranks;
  std::optional<double> mfu;
  std::optional<TraceStraggler> straggler;
  std::vector<std::string> notes;
};

/// A rule that only a trace can prove; the rules of a run are in analysis/rules.
struct TraceRule {
  std::string_view name;
  std::string_view help;  ///< one sentence: the condition
  std::string_view recommendation;
};
std::span<const TraceRule> trace_rules();

/// Adds the findings of a trace to those of the rules, largest first.  If a rule has found the same
/// on the same rank, its finding gets the evidence of the trace.
void add_findings(std::vector<Finding>& findings, std::span<const Finding> of_trace);

struct TraceReportOptions {
  std::optional<PeakTable> peaks;  ///< empty: those of the device that the trace names
  std::optional<StepFormula> formula{};
};

/// One report per device of the trace; one without device work if there is none.  Reorders the
/// trace's events.
std::vector<DeviceReport> report_devices(Trace& trace, const TraceReportOptions& options = {});

/// Compares the ranks of one run.
TraceReport merge_ranks(std::vector<DeviceReport> ranks);

/// Members of the object that `flopmeter trace --json` prints; the caller adds the time
/// budget and the findings.
void write_json_members(JsonWriter& json, const TraceReport& report);

}  // namespace flopmeter
