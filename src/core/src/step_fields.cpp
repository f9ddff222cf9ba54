// SPDX-License-Identifier: Apache-2.0
//
// The list of a record's fields: the one place to add one.
#include <flopmeter/core/static_text.h>
#include <flopmeter/core/step_record.h>

#include <array>
#include <concepts>
#include <type_traits>

namespace flopmeter {

std::string_view to_string(FlopsProvenance source) {
  constexpr auto names = std::to_array<std::string_view>(
      {"none", "counted", "calibrated", "estimate", "hardware", "received", "given"});
  return names[static_cast<std::size_t>(source)];
}

std::string_view to_string(StepTag tag) {
  constexpr auto names = std::to_array<std::string_view>(
      {"train", "profile", "compile", "evaluation", "checkpoint", "generation"});
  return names[static_cast<std::size_t>(tag)];
}

std::string_view to_string(Unit unit) {
  constexpr auto names = std::to_array<std::string_view>(
      {"", "count", "seconds", "unix seconds", "FLOPs", "TFLOP/s", "per second", "ratio", "bytes"});
  return names[static_cast<std::size_t>(unit)];
}

FlopTotals operator-(const FlopTotals& after, const FlopTotals& before) {
  FlopTotals d = after;
  for (std::size_t t = 0; t < dtype_count; ++t) {
    for (std::size_t p = 0; p < pass_count; ++p) {
      d.executed[t][p] -= before.executed[t][p];
      d.model[t][p] -= before.model[t][p];
    }
  }
  d.calls -= before.calls;
  d.unsupported_op_calls -= before.unsupported_op_calls;
  d.replicated -= before.replicated;
  for (std::size_t i = 0; i < d.attention_calls.size(); ++i)
    d.attention_calls[i] -= before.attention_calls[i];
  return d;
}

namespace {

using Record = const StepRecord&;

FieldValue to_value(std::integral auto value) {
  return static_cast<WideInt>(value);
}
FieldValue to_value(double value) {
  return value;
}
FieldValue to_value(Seconds value) {
  return value.value;
}
FieldValue to_value(Flops value) {
  return value.value;
}
template <class T>
FieldValue to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : FieldValue{};
}

/// Sets `target` where the value is of its kind and fits; says whether it did.
bool from_value(const FieldValue& value, std::integral auto& target) {
  using Target = std::remove_reference_t<decltype(target)>;
  const auto* whole = std::get_if<WideInt>(&value);
  if (whole == nullptr || static_cast<Target>(*whole) != *whole) return false;
  target = static_cast<Target>(*whole);
  return true;
}
bool from_value(const FieldValue& value, double& target) {
  const auto number = as_number(value);
  if (number) target = *number;
  return number.has_value();
}
bool from_value(const FieldValue& value, Seconds& target) {
  return from_value(value, target.value);
}
bool from_value(const FieldValue& value, Flops& target) {
  const auto* whole = std::get_if<WideInt>(&value);
  if (whole != nullptr) target.value = *whole;
  return whole != nullptr;
}
template <class T>
bool from_value(const FieldValue& value, std::optional<T>& target) {
  T content{};
  const bool known = from_value(value, content);
  target = known ? std::optional<T>{content} : std::nullopt;
  return known;
}

template <auto member>
FieldValue get(Record r) {
  return to_value(r.*member);
}
template <auto member>
bool set(StepRecord& r, const FieldValue& value) {
  return from_value(value, r.*member);
}

template <class Enum>
constexpr std::size_t count_of = 0;
template <>
constexpr std::size_t count_of<FlopsProvenance> = static_cast<std::size_t>(FlopsProvenance::given) +
                                                  1;
template <>
constexpr std::size_t count_of<StepTag> = static_cast<std::size_t>(StepTag::generation) + 1;
template <>
constexpr std::size_t count_of<AttentionPairs> = static_cast<std::size_t>(AttentionPairs::unknown) +
                                                 1;

/// An enumeration, by the name that to_string() gives each value.
template <auto member>
FieldValue get_name(Record r) {
  return to_string(r.*member);
}
template <auto member>
bool set_name(StepRecord& r, const FieldValue& value) {
  using Enum = std::remove_reference_t<decltype(r.*member)>;
  const auto* name = std::get_if<std::string_view>(&value);
  if (name == nullptr) return false;
  for (std::size_t i = 0; i < count_of<Enum>; ++i) {
    if (*name != to_string(static_cast<Enum>(i))) continue;
    r.*member = static_cast<Enum>(i);
    return true;
  }
  return false;
}

template <auto member>
FieldValue get_text(Record r) {
  return (r.*member).empty() ? FieldValue{} : FieldValue{r.*member};
}
template <auto member>
bool set_text(StepRecord& r, const FieldValue& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text != nullptr) r.*member = static_text(*text);
  return text != nullptr;
}

template <class T>
FieldValue rate(const std::optional<T>& amount, Seconds time) {
  if (!amount || !(time.value > 0)) return {};
  if constexpr (std::is_same_v<T, Flops>) {
    return (*amount / time).value;
  } else {
    return static_cast<double>(*amount) / time.value;
  }
}

template <Phase phase>
FieldValue get_phase(Record r) {
  return to_value(r.phases[static_cast<std::size_t>(phase)]);
}
template <Phase phase>
bool set_phase(StepRecord& r, const FieldValue& value) {
  return from_value(value, r.phases[static_cast<std::size_t>(phase)]);
}

template <Dtype dtype>
FieldValue get_flops(Record r) {
  const auto flops = r.hardware_flops_by_dtype[static_cast<std::size_t>(dtype)];
  return flops == 0 ? FieldValue{} : to_value(flops);
}
template <Dtype dtype>
bool set_flops(StepRecord& r, const FieldValue& value) {
  return from_value(value, r.hardware_flops_by_dtype[static_cast<std::size_t>(dtype)]);
}

// One row a field.
// clang-format off
constexpr auto fields = std::to_array<Field>({
    {"", "step", Unit::count, "optimizer step, counted from the loop's own number", get<&StepRecord::step>, set<&StepRecord::step>},
    {"", "process_step", Unit::count, "optimizer steps this process finished before this one", get<&StepRecord::process_step>, set<&StepRecord::process_step>},
    {"", "epoch", Unit::count, "epoch as the loop gives it", [](Record r) { return r.epoch < 0 ? FieldValue{} : to_value(r.epoch); }, set<&StepRecord::epoch>},
    {"", "rank", Unit::count, "rank that wrote the record", get<&StepRecord::rank>, set<&StepRecord::rank>},
    {"", "world_size", Unit::count, "ranks of the run", get<&StepRecord::world_size>, set<&StepRecord::world_size>},
    {"", "data_parallel", Unit::count, "ranks that work on different samples; the others work on parts of the same ones", get<&StepRecord::data_parallel>, set<&StepRecord::data_parallel>},
    {"", "devices", Unit::count, "devices the record's work ran on", get<&StepRecord::devices>, set<&StepRecord::devices>},
    {"", "micro_batches", Unit::count, "forward and backward passes accumulated into the step", get<&StepRecord::micro_batches>, set<&StepRecord::micro_batches>},
    {"", "time_unix", Unit::unix_time, "end of the step", get<&StepRecord::time_unix>, set<&StepRecord::time_unix>},
    {"", "step_seconds", Unit::seconds, "wall time from the end of the previous step to the end of this one", get<&StepRecord::step_seconds>, set<&StepRecord::step_seconds>},
    {"", "tag", Unit::none, "kind of step; all but train are kept out of the averages", get_name<&StepRecord::tag>, set_name<&StepRecord::tag>},
    {"", "stage", Unit::none, "part of the run that the loop names, such as rollout", get_text<&StepRecord::stage>, set_text<&StepRecord::stage>},
    {"", "mfu", Unit::ratio, "model FLOPs utilization: the least time the model's FLOPs need at peak, over the step's time", get<&StepRecord::mfu>, set<&StepRecord::mfu>},
    {"", "hfu", Unit::ratio, "hardware FLOPs utilization: as mfu, with recomputed and repeated work", get<&StepRecord::hfu>, set<&StepRecord::hfu>},
    {"", "mfu_window", Unit::ratio, "MFU over the last log interval", get<&StepRecord::mfu_window>, set<&StepRecord::mfu_window>},
    {"", "mfu_run", Unit::ratio, "MFU over the whole run, tagged steps left out", get<&StepRecord::mfu_run>, set<&StepRecord::mfu_run>},
    {"", "tflops_per_device_window", Unit::teraflops_per_second, "model TFLOP/s of one device over the last log interval", get<&StepRecord::tflops_per_device_window>, set<&StepRecord::tflops_per_device_window>},
    {"", "tflops_per_device_run", Unit::teraflops_per_second, "model TFLOP/s of one device over the whole run, tagged steps left out", get<&StepRecord::tflops_per_device_run>, set<&StepRecord::tflops_per_device_run>},
    {"", "tokens_per_second_window", Unit::per_second, "real tokens a second over the last log interval", get<&StepRecord::tokens_per_second_window>, set<&StepRecord::tokens_per_second_window>},
    {"", "tokens_per_second_run", Unit::per_second, "real tokens a second over the whole run, tagged steps left out", get<&StepRecord::tokens_per_second_run>, set<&StepRecord::tokens_per_second_run>},
    {"", "goodput", Unit::ratio, "time in train steps not done twice, over all time since the run's first start", [](Record r) { return r.run_seconds && r.productive_seconds && r.run_seconds->value > 0 ? FieldValue{*r.productive_seconds / *r.run_seconds} : FieldValue{}; }, nullptr},
    {"", "run_seconds", Unit::seconds, "time since the run's first start, restarts included", get<&StepRecord::run_seconds>, set<&StepRecord::run_seconds>},
    {"", "productive_seconds", Unit::seconds, "time in train steps of the run that were not done twice", get<&StepRecord::productive_seconds>, set<&StepRecord::productive_seconds>},
    {"", "inter_step_seconds", Unit::seconds, "part of the step before its first event: the loop's own code", get<&StepRecord::inter_step_seconds>, set<&StepRecord::inter_step_seconds>},
    {"", "model_flops", Unit::flops, "FLOPs the model needs for the step under the convention", get<&StepRecord::model_flops>, set<&StepRecord::model_flops>},
    {"", "hardware_flops", Unit::flops, "FLOPs that were executed for the step", get<&StepRecord::hardware_flops>, set<&StepRecord::hardware_flops>},
    {"", "recompute_flops", Unit::flops, "part of hardware_flops spent on recomputing activations", get<&StepRecord::recompute_flops>, set<&StepRecord::recompute_flops>},
    {"", "replicated_flops", Unit::flops, "part of model_flops that another rank of the tensor-parallel group counts as its own", get<&StepRecord::replicated_flops>, set<&StepRecord::replicated_flops>},
    {"", "flops_source", Unit::none, "where the FLOPs came from", get_name<&StepRecord::flops_source>, set_name<&StepRecord::flops_source>},
    {"", "flops_note", Unit::none, "why the FLOPs have this source, where it is not the usual one", get_text<&StepRecord::flops_note>, set_text<&StepRecord::flops_note>},
    {"", "counted_flops", Unit::flops, "model FLOPs that were counted, where another source is shown in their place", get<&StepRecord::counted_flops>, set<&StepRecord::counted_flops>},
    {"", "estimated_flops", Unit::flops, "model FLOPs by the estimator", get<&StepRecord::estimated_flops>, set<&StepRecord::estimated_flops>},
    {"", "counter_flops_per_second", Unit::per_second, "FLOPs a second by hardware counters, which count what ran and not what a model needs", get<&StepRecord::counter_flops_per_second>, set<&StepRecord::counter_flops_per_second>},
    {"", "attention_pairs", Unit::none, "what was known of the attention masks: none, exact, full or unknown", get_name<&StepRecord::attention_pairs>, set_name<&StepRecord::attention_pairs>},
    {"", "convention", Unit::none, "how model_flops counts", get_text<&StepRecord::convention>, set_text<&StepRecord::convention>},
    {"", "calibration_age", Unit::count, "steps since the measurement that this figure leans on", get<&StepRecord::calibration_age>, set<&StepRecord::calibration_age>},
    {"", "calibration_error", Unit::ratio, "measured over estimated FLOPs, minus one, when last compared", get<&StepRecord::calibration_error>, set<&StepRecord::calibration_error>},
    {"", "unsupported_op_calls", Unit::count, "operations seen whose arguments had no flop_cost", get<&StepRecord::unsupported_op_calls>, set<&StepRecord::unsupported_op_calls>},
    {"", "tflops_per_device", Unit::teraflops_per_second, "model TFLOP/s of one device", [](Record r) { return r.model_flops && r.step_seconds.value > 0 ? FieldValue{(*r.model_flops / r.step_seconds).value / r.devices / 1e12} : FieldValue{}; }, nullptr},
    {"", "samples", Unit::count, "samples in the step", get<&StepRecord::samples>, set<&StepRecord::samples>},
    {"", "tokens", Unit::count, "real tokens in the step, padding left out", get<&StepRecord::tokens>, set<&StepRecord::tokens>},
    {"", "padded_tokens", Unit::count, "tokens in the step with padding", get<&StepRecord::padded_tokens>, set<&StepRecord::padded_tokens>},
    {"", "visual_tokens", Unit::count, "tokens that stand for image patches", get<&StepRecord::visual_tokens>, set<&StepRecord::visual_tokens>},
    {"", "batch", Unit::none, "lengths of the sequences, padded length and image grids: what other conventions are recomputed from", get_text<&StepRecord::batch>, nullptr},
    {"", "samples_per_second", Unit::per_second, "samples a second", [](Record r) { return rate(r.samples, r.step_seconds); }, nullptr},
    {"", "tokens_per_second", Unit::per_second, "real tokens a second", [](Record r) { return rate(r.tokens, r.step_seconds); }, nullptr},
    {"phases", "data", Unit::seconds, "waiting for the next batch", get_phase<Phase::data>, set_phase<Phase::data>},
    {"phases", "forward", Unit::seconds, "forward pass", get_phase<Phase::forward>, set_phase<Phase::forward>},
    {"phases", "backward", Unit::seconds, "backward pass, recompute included", get_phase<Phase::backward>, set_phase<Phase::backward>},
    {"phases", "optimizer", Unit::seconds, "optimizer step and gradient clipping", get_phase<Phase::optimizer>, set_phase<Phase::optimizer>},
    {"phases", "communication", Unit::seconds, "collectives that nothing else hid", get_phase<Phase::communication>, set_phase<Phase::communication>},
    {"phases", "checkpoint", Unit::seconds, "saving state", get_phase<Phase::checkpoint>, set_phase<Phase::checkpoint>},
    {"phases", "evaluation", Unit::seconds, "evaluating between steps", get_phase<Phase::evaluation>, set_phase<Phase::evaluation>},
    {"phases", "generation", Unit::seconds, "generating samples with the model", get_phase<Phase::generation>, set_phase<Phase::generation>},
    {"phases", "other", Unit::seconds, "the rest of the step", get_phase<Phase::other>, set_phase<Phase::other>},
    {"", "overlapped_communication", Unit::seconds, "collective time that ran beside other work", get<&StepRecord::overlapped_communication>, set<&StepRecord::overlapped_communication>},
    {"", "data_wait_samples", Unit::count, "looks at the process while it waited for data", get<&StepRecord::data_wait_samples>, set<&StepRecord::data_wait_samples>},
    {"", "data_wait_busy_samples", Unit::count, "those looks at which it or one of its loader workers was running", get<&StepRecord::data_wait_busy_samples>, set<&StepRecord::data_wait_busy_samples>},
    {"memory_bytes", "rss", Unit::bytes, "resident memory of the process", get<&StepRecord::memory_rss_bytes>, set<&StepRecord::memory_rss_bytes>},
    {"memory_bytes", "rss_peak", Unit::bytes, "highest resident memory so far", get<&StepRecord::memory_rss_peak_bytes>, set<&StepRecord::memory_rss_peak_bytes>},
    {"memory_bytes", "device", Unit::bytes, "device memory allocated now", get<&StepRecord::memory_device_bytes>, set<&StepRecord::memory_device_bytes>},
    {"memory_bytes", "device_peak", Unit::bytes, "highest device memory allocated", get<&StepRecord::memory_device_peak_bytes>, set<&StepRecord::memory_device_peak_bytes>},
    {"memory_bytes", "device_reserved", Unit::bytes, "device memory held by the allocator", get<&StepRecord::memory_device_reserved_bytes>, set<&StepRecord::memory_device_reserved_bytes>},
    {"gpu", "utilization", Unit::ratio, "share of the last moments in which a kernel ran, by NVML", get<&StepRecord::gpu_utilization>, set<&StepRecord::gpu_utilization>},
    {"gpu", "tensor_active", Unit::ratio, "share of what the tensor cores can do, by GPM or DCGM", get<&StepRecord::gpu_tensor_active>, set<&StepRecord::gpu_tensor_active>},
    {"gpu", "dram_active", Unit::ratio, "share of what the memory bus can carry, by GPM or DCGM", get<&StepRecord::gpu_dram_active>, set<&StepRecord::gpu_dram_active>},
    {"gpu", "power_watts", Unit::none, "power drawn, in watts", get<&StepRecord::gpu_power_watts>, set<&StepRecord::gpu_power_watts>},
    {"gpu", "sm_clock_hertz", Unit::none, "clock of the multiprocessors, in hertz", get<&StepRecord::gpu_sm_clock_hertz>, set<&StepRecord::gpu_sm_clock_hertz>},
    {"gpu", "throttle_reasons", Unit::none, "why the clock is not higher: NVML's bits of clocks event reasons", get<&StepRecord::gpu_throttle_reasons>, set<&StepRecord::gpu_throttle_reasons>},
    {"gpu", "memory_used_bytes", Unit::bytes, "memory in use by all processes", get<&StepRecord::gpu_memory_used_bytes>, set<&StepRecord::gpu_memory_used_bytes>},
    {"flops_by_dtype", "fp64", Unit::flops, "executed FLOPs in fp64", get_flops<Dtype::fp64>, set_flops<Dtype::fp64>},
    {"flops_by_dtype", "fp32", Unit::flops, "executed FLOPs in fp32", get_flops<Dtype::fp32>, set_flops<Dtype::fp32>},
    {"flops_by_dtype", "tf32", Unit::flops, "executed FLOPs in tf32", get_flops<Dtype::tf32>, set_flops<Dtype::tf32>},
    {"flops_by_dtype", "bf16", Unit::flops, "executed FLOPs in bf16", get_flops<Dtype::bf16>, set_flops<Dtype::bf16>},
    {"flops_by_dtype", "fp16", Unit::flops, "executed FLOPs in fp16", get_flops<Dtype::fp16>, set_flops<Dtype::fp16>},
    {"flops_by_dtype", "fp8", Unit::flops, "executed FLOPs in fp8", get_flops<Dtype::fp8>, set_flops<Dtype::fp8>},
    {"flops_by_dtype", "fp4", Unit::flops, "executed FLOPs in fp4", get_flops<Dtype::fp4>, set_flops<Dtype::fp4>},
    {"flops_by_dtype", "int8", Unit::flops, "executed operations in int8", get_flops<Dtype::int8>, set_flops<Dtype::int8>},
    {"flops_by_dtype", "other", Unit::flops, "executed FLOPs in formats without a name here", get_flops<Dtype::other>, set_flops<Dtype::other>},
    {"", "loss", Unit::none, "loss as the loop gives it", get<&StepRecord::loss>, set<&StepRecord::loss>},
    {"", "grad_norm", Unit::none, "gradient norm as the loop gives it", get<&StepRecord::grad_norm>, set<&StepRecord::grad_norm>},
    {"", "learning_rate", Unit::none, "learning rate as the loop gives it", get<&StepRecord::learning_rate>, set<&StepRecord::learning_rate>},
    {"", "monitor_seconds", Unit::seconds, "what watching this step cost the training thread", get<&StepRecord::monitor_seconds>, set<&StepRecord::monitor_seconds>},
    {"", "writer_seconds", Unit::seconds, "processor time of the writing thread for this record", get<&StepRecord::writer_seconds>, set<&StepRecord::writer_seconds>},
    {"", "dropped_records", Unit::count, "records lost so far because a ring was full", get<&StepRecord::dropped_records>, set<&StepRecord::dropped_records>},
    {"", "failed_writes", Unit::count, "writes that outputs reported as failed so far", get<&StepRecord::failed_writes>, set<&StepRecord::failed_writes>},
});
// clang-format on

}  // namespace

std::span<const Field> step_fields() {
  return fields;
}

const Field* find_step_field(std::string_view name) {
  for (const Field& field : fields) {
    if (field.group.empty()
            ? name == field.name
            : name.starts_with(field.group) && name.substr(field.group.size()).starts_with('.') &&
                  name.substr(field.group.size() + 1) == field.name) {
      return &field;
    }
  }
  return nullptr;
}

std::optional<double> as_number(const FieldValue& value) {
  if (const auto* integer_value = std::get_if<WideInt>(&value))
    return static_cast<double>(*integer_value);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

}  // namespace flopmeter
