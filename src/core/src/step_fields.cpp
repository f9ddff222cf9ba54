// SPDX-License-Identifier: Apache-2.0
//
// The field table.  To add a field, add its row here.
#include "field_value.h"

#include <flopmeter/core/step_fields.h>
#include <flopmeter/core/step_totals.h>

#include <array>

namespace flopmeter {

std::string_view to_string(Unit unit) {
  constexpr auto names = std::to_array<std::string_view>({"",
                                                          "count",
                                                          "seconds",
                                                          "unix seconds",
                                                          "FLOPs",
                                                          "TFLOP/s",
                                                          "per second",
                                                          "ratio",
                                                          "bytes",
                                                          "watts",
                                                          "hertz"});
  return names[static_cast<std::size_t>(unit)];
}

std::string_view to_string(FieldKind kind) {
  constexpr auto names =
      std::to_array<std::string_view>({"text", "gauge", "ratio", "counter", "total"});
  return names[static_cast<std::size_t>(kind)];
}

namespace {

using Record = const StepRecord&;

/// A row for a member.
template <auto member>
constexpr Field row(std::string_view group,
                    std::string_view name,
                    Unit unit,
                    FieldKind kind,
                    std::string_view help,
                    std::string_view prometheus = {},
                    std::string_view tensorboard = {}) {
  return {group,
          name,
          unit,
          kind,
          help,
          prometheus,
          tensorboard,
          [](Record r) { return to_value(r.*member); },
          [](StepRecord& r, const FieldValue& value) { return from_value(value, r.*member); }};
}

/// A row for the seconds of a phase.
template <auto member, Phase phase>
constexpr Field phase_row(std::string_view group,
                          std::string_view help,
                          std::string_view prometheus,
                          std::string_view tensorboard) {
  constexpr auto at = static_cast<std::size_t>(phase);
  return {
      group,
      to_string(phase),
      Unit::seconds,
      FieldKind::counter,
      help,
      prometheus,
      tensorboard,
      [](Record r) { return to_value((r.*member)[at]); },
      [](StepRecord& r, const FieldValue& value) { return from_value(value, (r.*member)[at]); }};
}

/// A row for the FLOPs in a dtype; 0 is written as unknown.
template <auto member, Dtype dtype>
constexpr Field dtype_row(std::string_view group,
                          std::string_view name,
                          std::string_view prometheus) {
  constexpr auto at = static_cast<std::size_t>(dtype);
  return {
      group,
      name,
      Unit::flops,
      FieldKind::counter,
      member == &StepRecord::model_flops_by_dtype ? "part of model_flops in this dtype"
                                                  : "part of hardware_flops in this dtype",
      prometheus,
      {},
      [](Record r) { return (r.*member)[at] == 0 ? FieldValue{} : to_value((r.*member)[at]); },
      [](StepRecord& r, const FieldValue& value) { return from_value(value, (r.*member)[at]); }};
}

/// A row for a value that follows from other members.
constexpr Field derived(std::string_view name,
                        Unit unit,
                        FieldKind kind,
                        std::string_view help,
                        std::string_view prometheus,
                        std::string_view tensorboard,
                        FieldValue (*read)(Record)) {
  return {"", name, unit, kind, help, prometheus, tensorboard, read, nullptr};
}

FieldValue amount_per_second(const std::optional<std::int64_t>& amount, Seconds time) {
  if (!amount) return {};
  return to_value(AmountOverTime<std::int64_t>{*amount, time.value}.rate());
}

FieldValue epoch(Record r) {
  return r.epoch < 0 ? FieldValue{} : to_value(r.epoch);
}

bool set_steps(StepRecord& r, const FieldValue& value) {
  constexpr std::int32_t most = 1'000'000;  // a reader may sum any number of records
  std::int32_t steps = 0;
  const bool fits = from_value(value, steps) && steps >= 1 && steps <= most;
  if (fits) r.steps = steps;
  return fits;
}

FieldValue goodput(Record r) {
  if (!r.run_seconds || !r.productive_seconds || !(r.run_seconds->value > 0)) return {};
  return *r.productive_seconds / *r.run_seconds;
}

FieldValue tflops_per_device(Record r) {
  if (!r.model_flops || !(r.step_seconds.value > 0)) return {};
  return (*r.model_flops / r.step_seconds).value / r.devices / 1e12;
}

using R = StepRecord;
using enum Unit;
constexpr auto text = FieldKind::text;
constexpr auto gauge = FieldKind::gauge;
constexpr auto rate = FieldKind::ratio;
constexpr auto counter = FieldKind::counter;
constexpr auto total = FieldKind::total;

// clang-format off
constexpr auto fields = std::to_array<Field>({
    row<&R::step>("", "step", count, gauge, "optimizer step, as the training loop numbers it"),
    row<&R::process_step>("", "process_step", count, gauge, "optimizer steps that this process finished before this one"),
    {"", "steps", count, counter, "train steps that the record sums; above 1 if steps end faster than records are written", "", "", row<&R::steps>("", "", count, counter, "").read, set_steps},
    {"", "epoch", count, gauge, "epoch, as the training loop numbers it", "flopmeter_epoch", "", epoch, row<&R::epoch>("", "epoch", count, gauge, "").set},
    row<&R::rank>("", "rank", count, gauge, "rank that wrote the record"),
    row<&R::world_size>("", "world_size", count, gauge, "ranks of the run"),
    row<&R::data_parallel>("", "data_parallel", count, gauge, "ranks that process different samples"),
    row<&R::devices>("", "devices", count, gauge, "devices that the work of the record ran on"),
    row<&R::micro_batches>("", "micro_batches", count, gauge, "forward and backward passes accumulated into the step"),
    row<&R::time_unix>("", "time_unix", unix_time, gauge, "end of the step", "flopmeter_last_step_timestamp_seconds"),
    row<&R::step_seconds>("", "step_seconds", seconds, counter, "wall time from the end of the previous step to the end of this one", "", "perf/step_time"),
    row<&R::tag>("", "tag", none, text, "kind of record: train, profile, compile, evaluation, checkpoint, or generation; averages use train"),
    row<&R::stage>("", "stage", none, text, "part of the program that the step belongs to, as the program names it"),
    row<&R::mfu>("", "mfu", ratio, rate, "model FLOPs utilization: ideal time of the model FLOPs at peak over the wall time", "flopmeter_mfu_ratio", "perf/mfu"),
    row<&R::hfu>("", "hfu", ratio, rate, "hardware FLOPs utilization: like mfu, with recomputation and padding", "flopmeter_hfu_ratio", "perf/hfu"),
    row<&R::ideal_seconds>("", "ideal_seconds", seconds, counter, "time of model_flops at the peak of all devices", "flopmeter_ideal_seconds_total"),
    derived("goodput", ratio, gauge, "time in train steps that were not repeated over the time since the first start", "flopmeter_goodput_ratio", "perf/goodput", goodput),
    row<&R::run_seconds>("", "run_seconds", seconds, total, "time since the first start of the run, restarts included", "flopmeter_run_seconds_total"),
    row<&R::productive_seconds>("", "productive_seconds", seconds, total, "time in train steps of the run that were not repeated", "flopmeter_productive_seconds_total"),
    row<&R::inter_step_seconds>("", "inter_step_seconds", seconds, counter, "part of the step before its first event: code of the training loop", "flopmeter_inter_step_seconds_total", "time/inter_step_seconds"),
    row<&R::model_flops>("", "model_flops", flops, counter, "FLOPs that the model needs for the step under the convention", "flopmeter_model_flops_total"),
    row<&R::hardware_flops>("", "hardware_flops", flops, counter, "FLOPs that ran for the step", "flopmeter_hardware_flops_total"),
    row<&R::recompute_flops>("", "recompute_flops", flops, counter, "part of hardware_flops spent on activation recomputation", "flopmeter_recompute_flops_total"),
    row<&R::replicated_flops>("", "replicated_flops", flops, counter, "part of model_flops that another rank of the tensor-parallel group also counts", "flopmeter_replicated_flops_total"),
    row<&R::bounded_flops>("", "bounded_flops", flops, counter, "part of model_flops that is an upper bound", "flopmeter_bounded_flops_total"),
    row<&R::flops_source>("", "flops_source", none, text, "where the FLOPs come from: none, counted, counted+catalog, calibrated, estimate, hardware, broadcast, user, or framework"),
    row<&R::flops_note>("", "flops_note", none, text, "why the FLOPs have this source, if it is not the usual one"),
    row<&R::counted_flops>("", "counted_flops", flops, counter, "model FLOPs that were counted, if another source is shown instead"),
    row<&R::estimated_flops>("", "estimated_flops", flops, counter, "model FLOPs of the estimate"),
    row<&R::counter_flops_per_second>("", "counter_flops_per_second", per_second, rate, "FLOPs per second of hardware counters, which count all work, not only the model's"),
    row<&R::attention_pairs>("", "attention_pairs", none, text, "what was known about the attention masks: none, exact, full, or unknown"),
    row<&R::convention>("", "convention", none, text, "convention of model_flops"),
    row<&R::calibration_age>("", "calibration_age", count, gauge, "steps since the measurement that the FLOPs are based on", "flopmeter_calibration_age_steps"),
    row<&R::calibration_error>("", "calibration_error", ratio, gauge, "measured over estimated FLOPs, minus one, at the last comparison", "flopmeter_calibration_error_ratio"),
    row<&R::unsupported_op_calls>("", "unsupported_op_calls", count, counter, "calls of operators whose arguments have no FLOP cost", "flopmeter_unsupported_op_calls_total"),
    row<&R::coverage>("", "coverage", ratio, gauge, "time in supported operators over compute time", "flopmeter_coverage_ratio", "perf/coverage"),
    derived("tflops_per_device", teraflops_per_second, rate, "model TFLOP/s per device", "", "performance/tflops_per_gpu", tflops_per_device),
    row<&R::samples>("", "samples", count, counter, "samples in the step", "flopmeter_samples_total"),
    row<&R::tokens>("", "tokens", count, counter, "tokens in the step, without padding; in a generation, the new tokens", "flopmeter_tokens_total"),
    row<&R::padded_tokens>("", "padded_tokens", count, counter, "tokens in the step, with padding", "flopmeter_padded_tokens_total"),
    row<&R::visual_tokens>("", "visual_tokens", count, counter, "tokens that represent image patches", "flopmeter_visual_tokens_total"),
    row<&R::batch>("", "batch", none, text, "sequence lengths, padded length, and image grids: the input of recounts"),
    derived("samples_per_second", per_second, rate, "samples per second", "", "", [](Record r) { return amount_per_second(r.samples, r.step_seconds); }),
    derived("tokens_per_second", per_second, rate, "tokens per second", "", "", [](Record r) { return amount_per_second(r.tokens, r.step_seconds); }),
    row<&R::time_source>("", "time_source", none, text, "clock of step_seconds and phases: host or device; empty if the device runs behind the host and does not time its work"),
    phase_row<&R::phases, Phase::data>("phases", "waiting for the next batch", "flopmeter_phase_seconds_total{phase=\"data\"}", "phases/data"),
    phase_row<&R::phases, Phase::forward>("phases", "forward pass", "flopmeter_phase_seconds_total{phase=\"forward\"}", "phases/forward"),
    phase_row<&R::phases, Phase::backward>("phases", "backward pass, recomputation included", "flopmeter_phase_seconds_total{phase=\"backward\"}", "phases/backward"),
    phase_row<&R::phases, Phase::optimizer>("phases", "optimizer step and gradient clipping", "flopmeter_phase_seconds_total{phase=\"optimizer\"}", "phases/optimizer"),
    phase_row<&R::phases, Phase::communication>("phases", "exposed communication", "flopmeter_phase_seconds_total{phase=\"communication\"}", "phases/communication"),
    phase_row<&R::phases, Phase::checkpoint>("phases", "saving a checkpoint", "flopmeter_phase_seconds_total{phase=\"checkpoint\"}", "phases/checkpoint"),
    phase_row<&R::phases, Phase::evaluation>("phases", "evaluation between steps", "flopmeter_phase_seconds_total{phase=\"evaluation\"}", "phases/evaluation"),
    phase_row<&R::phases, Phase::generation>("phases", "generating samples with the model", "flopmeter_phase_seconds_total{phase=\"generation\"}", "phases/generation"),
    phase_row<&R::phases, Phase::other>("phases", "rest of the step", "flopmeter_phase_seconds_total{phase=\"other\"}", "phases/other"),
    row<&R::host_seconds>("", "host_seconds", seconds, counter, "wall time of the step by the host clock, if step_seconds is device time", "flopmeter_host_seconds_total"),
    phase_row<&R::host_phases, Phase::data>("host_phases", "waiting for the next batch, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"data\"}", "host_phases/data"),
    phase_row<&R::host_phases, Phase::forward>("host_phases", "forward pass, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"forward\"}", "host_phases/forward"),
    phase_row<&R::host_phases, Phase::backward>("host_phases", "backward pass, recomputation included, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"backward\"}", "host_phases/backward"),
    phase_row<&R::host_phases, Phase::optimizer>("host_phases", "optimizer step and gradient clipping, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"optimizer\"}", "host_phases/optimizer"),
    phase_row<&R::host_phases, Phase::communication>("host_phases", "exposed communication, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"communication\"}", "host_phases/communication"),
    phase_row<&R::host_phases, Phase::checkpoint>("host_phases", "saving a checkpoint, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"checkpoint\"}", "host_phases/checkpoint"),
    phase_row<&R::host_phases, Phase::evaluation>("host_phases", "evaluation between steps, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"evaluation\"}", "host_phases/evaluation"),
    phase_row<&R::host_phases, Phase::generation>("host_phases", "generating samples with the model, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"generation\"}", "host_phases/generation"),
    phase_row<&R::host_phases, Phase::other>("host_phases", "rest of the step, by the host clock", "flopmeter_host_phase_seconds_total{phase=\"other\"}", "host_phases/other"),
    row<&R::device_idle_min_seconds>("", "device_idle_min_seconds", seconds, counter, "lower bound of the time in which the device was idle", "flopmeter_device_idle_min_seconds_total", "time/device_idle_min_seconds"),
    row<&R::device_idle_max_seconds>("", "device_idle_max_seconds", seconds, counter, "upper bound of the time in which the device was idle", "flopmeter_device_idle_max_seconds_total", "time/device_idle_max_seconds"),
    row<&R::device_idle_data>("device_idle", "data", seconds, counter, "part of the upper bound while the host waited for data", "flopmeter_device_idle_seconds_total{host=\"data\"}", "device_idle/data"),
    row<&R::device_idle_synchronization>("device_idle", "synchronization", seconds, counter, "part of the upper bound while the host was blocked on the device", "flopmeter_device_idle_seconds_total{host=\"synchronization\"}", "device_idle/synchronization"),
    row<&R::device_idle_loop>("device_idle", "loop", seconds, counter, "part of the upper bound while the host ran code of the loop", "flopmeter_device_idle_seconds_total{host=\"loop\"}", "device_idle/loop"),
    row<&R::device_idle_launch>("device_idle", "launch", seconds, counter, "part of the upper bound while the host launched work", "flopmeter_device_idle_seconds_total{host=\"launch\"}", "device_idle/launch"),
    row<&R::queue_lag_seconds>("", "queue_lag_seconds", seconds, gauge, "how far the device is behind the host at the end of the step", "flopmeter_queue_lag_seconds", "time/queue_lag_seconds"),
    row<&R::overlapped_communication>("", "overlapped_communication", seconds, counter, "communication that overlapped other work", "flopmeter_overlapped_communication_seconds_total", "time/overlapped_communication_seconds"),
    row<&R::exposed_communication_seconds>("", "exposed_communication_seconds", seconds, counter, "communication that did not overlap other work", "flopmeter_exposed_communication_seconds_total", "time/exposed_communication_seconds"),
    row<&R::exposed_copy_seconds>("", "exposed_copy_seconds", seconds, counter, "copies between host and device that did not overlap other work", "flopmeter_exposed_copy_seconds_total", "time/exposed_copy_seconds"),
    row<&R::synchronization_seconds>("", "synchronization_seconds", seconds, counter, "time in which the host was blocked on the device", "flopmeter_synchronization_seconds_total", "time/synchronization_seconds"),
    row<&R::synchronizations>("", "synchronizations", count, counter, "calls that blocked the host on the device", "flopmeter_synchronizations_total"),
    row<&R::data_wait_samples>("", "data_wait_samples", count, counter, "samples of the process taken while it waited for data", "flopmeter_data_wait_samples_total"),
    row<&R::data_wait_busy_samples>("", "data_wait_busy_samples", count, counter, "samples in which the process or a loader worker was running", "flopmeter_data_wait_busy_samples_total"),
    row<&R::run_queue_seconds>("", "run_queue_seconds", seconds, counter, "time in which the training thread was ready to run but other threads occupied the processors", "flopmeter_run_queue_seconds_total", "time/run_queue_seconds"),
    row<&R::throttled_seconds>("", "throttled_seconds", seconds, counter, "time in which the cgroup throttled the process because its processor quota was used up", "flopmeter_throttled_seconds_total", "time/throttled_seconds"),
    row<&R::stolen_seconds>("", "stolen_seconds", seconds, counter, "time in which the hypervisor ran other machines, mean of the processors", "flopmeter_stolen_seconds_total", "time/stolen_seconds"),
    row<&R::garbage_collection_seconds>("", "garbage_collection_seconds", seconds, counter, "time in Python's garbage collector", "flopmeter_garbage_collection_seconds_total", "time/garbage_collection_seconds"),
    row<&R::interpreter_lock_seconds>("", "interpreter_lock_seconds", seconds, counter, "time in which the training thread waited for Python's interpreter lock, from samples", "flopmeter_interpreter_lock_seconds_total", "time/interpreter_lock_seconds"),
    row<&R::memory_rss_bytes>("memory_bytes", "rss", bytes, gauge, "resident memory of the process", "flopmeter_process_memory_bytes"),
    row<&R::memory_rss_peak_bytes>("memory_bytes", "rss_peak", bytes, gauge, "highest resident memory so far", "flopmeter_process_memory_peak_bytes"),
    row<&R::memory_device_bytes>("memory_bytes", "device", bytes, gauge, "device memory allocated", "flopmeter_device_memory_allocated_bytes"),
    row<&R::memory_device_peak_bytes>("memory_bytes", "device_peak", bytes, gauge, "highest device memory allocated", "flopmeter_device_memory_peak_bytes"),
    row<&R::memory_device_reserved_bytes>("memory_bytes", "device_reserved", bytes, gauge, "device memory held by the allocator", "flopmeter_device_memory_reserved_bytes"),
    row<&R::gpu_utilization>("gpu", "utilization", ratio, gauge, "fraction of the last sampling period in which a kernel ran, from NVML", "flopmeter_gpu_utilization_ratio", "gpu/utilization"),
    row<&R::gpu_tensor_active>("gpu", "tensor_active", ratio, gauge, "fraction of the peak of the tensor cores in use, from GPM or DCGM", "flopmeter_gpu_tensor_active_ratio", "gpu/tensor_active"),
    row<&R::gpu_dram_active>("gpu", "dram_active", ratio, gauge, "fraction of the memory bandwidth in use, from GPM or DCGM", "flopmeter_gpu_dram_active_ratio", "gpu/dram_active"),
    row<&R::gpu_power_watts>("gpu", "power_watts", watts, gauge, "power draw", "flopmeter_gpu_power_watts", "gpu/power_watts"),
    row<&R::gpu_sm_clock_hertz>("gpu", "sm_clock_hertz", hertz, gauge, "clock of the multiprocessors", "flopmeter_gpu_sm_clock_hertz", "gpu/sm_clock_hertz"),
    row<&R::gpu_throttle_reasons>("gpu", "throttle_reasons", none, gauge, "why the clock is not higher: NVML bit mask of clocks event reasons"),
    row<&R::gpu_memory_used_bytes>("gpu", "memory_used_bytes", bytes, gauge, "memory in use by all processes", "flopmeter_gpu_memory_used_bytes", "gpu/memory_used_bytes"),
    dtype_row<&R::model_flops_by_dtype, Dtype::fp64>("model_flops_by_dtype", "fp64", "flopmeter_model_flops_by_dtype_total{dtype=\"fp64\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::fp32>("model_flops_by_dtype", "fp32", "flopmeter_model_flops_by_dtype_total{dtype=\"fp32\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::tf32>("model_flops_by_dtype", "tf32", "flopmeter_model_flops_by_dtype_total{dtype=\"tf32\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::bf16>("model_flops_by_dtype", "bf16", "flopmeter_model_flops_by_dtype_total{dtype=\"bf16\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::fp16>("model_flops_by_dtype", "fp16", "flopmeter_model_flops_by_dtype_total{dtype=\"fp16\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::fp8>("model_flops_by_dtype", "fp8", "flopmeter_model_flops_by_dtype_total{dtype=\"fp8\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::fp4>("model_flops_by_dtype", "fp4", "flopmeter_model_flops_by_dtype_total{dtype=\"fp4\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::int8>("model_flops_by_dtype", "int8", "flopmeter_model_flops_by_dtype_total{dtype=\"int8\"}"),
    dtype_row<&R::model_flops_by_dtype, Dtype::other>("model_flops_by_dtype", "other", "flopmeter_model_flops_by_dtype_total{dtype=\"other\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::fp64>("hardware_flops_by_dtype", "fp64", "flopmeter_hardware_flops_by_dtype_total{dtype=\"fp64\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::fp32>("hardware_flops_by_dtype", "fp32", "flopmeter_hardware_flops_by_dtype_total{dtype=\"fp32\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::tf32>("hardware_flops_by_dtype", "tf32", "flopmeter_hardware_flops_by_dtype_total{dtype=\"tf32\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::bf16>("hardware_flops_by_dtype", "bf16", "flopmeter_hardware_flops_by_dtype_total{dtype=\"bf16\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::fp16>("hardware_flops_by_dtype", "fp16", "flopmeter_hardware_flops_by_dtype_total{dtype=\"fp16\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::fp8>("hardware_flops_by_dtype", "fp8", "flopmeter_hardware_flops_by_dtype_total{dtype=\"fp8\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::fp4>("hardware_flops_by_dtype", "fp4", "flopmeter_hardware_flops_by_dtype_total{dtype=\"fp4\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::int8>("hardware_flops_by_dtype", "int8", "flopmeter_hardware_flops_by_dtype_total{dtype=\"int8\"}"),
    dtype_row<&R::hardware_flops_by_dtype, Dtype::other>("hardware_flops_by_dtype", "other", "flopmeter_hardware_flops_by_dtype_total{dtype=\"other\"}"),
    row<&R::loss>("", "loss", none, gauge, "loss, as the training loop reports it", "flopmeter_loss", "train/loss"),
    row<&R::grad_norm>("", "grad_norm", none, gauge, "gradient norm, as the training loop reports it", "flopmeter_grad_norm", "train/grad_norm"),
    row<&R::learning_rate>("", "learning_rate", none, gauge, "learning rate, as the training loop reports it", "flopmeter_learning_rate", "train/learning_rate"),
    row<&R::monitor_seconds>("", "monitor_seconds", seconds, counter, "time that the monitor took on the training thread", "flopmeter_monitor_seconds_total"),
    row<&R::writer_seconds>("", "writer_seconds", seconds, counter, "CPU time of the writer thread for this record", "flopmeter_writer_seconds_total"),
    row<&R::dropped_records>("", "dropped_records", count, total, "records lost so far because the ring was full", "flopmeter_dropped_records_total"),
    row<&R::failed_writes>("", "failed_writes", count, total, "failed writes of all sinks so far", "flopmeter_failed_writes_total"),
});
// clang-format on

}  // namespace

std::span<const Field> step_fields() {
  return fields;
}

std::string full_name(const Field& field) {
  std::string name{field.group};
  if (!name.empty()) name.push_back('.');
  return name.append(field.name);
}

const Field* find_step_field(std::string_view name) {
  const std::size_t dot = name.find('.');
  const bool grouped = dot != std::string_view::npos;
  const std::string_view group = grouped ? name.substr(0, dot) : std::string_view{};
  const std::string_view member = grouped ? name.substr(dot + 1) : name;
  for (const Field& field : fields) {
    if (field.group == group && field.name == member) return &field;
  }
  return nullptr;
}

std::optional<double> as_number(const FieldValue& value) {
  if (const auto* integer = std::get_if<WideInt>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

}  // namespace flopmeter
