// SPDX-License-Identifier: Apache-2.0
//
// The list of a record's fields: the one place to add one.
#include <flopmeter/core/step_record.h>

namespace flopmeter {

std::string_view to_string(FlopsSource source) {
  constexpr std::string_view names[] = {
      "none", "counted", "calibrated", "estimate", "hardware", "received", "given"};
  return names[static_cast<std::size_t>(source)];
}

std::string_view to_string(StepTag tag) {
  constexpr std::string_view names[] = {
      "train", "warmup", "compile", "evaluation", "checkpoint", "survey"};
  return names[static_cast<std::size_t>(tag)];
}

std::string_view to_string(Unit unit) {
  constexpr std::string_view names[] = {
      "", "count", "seconds", "unix seconds", "FLOPs", "TFLOP/s", "per second", "ratio", "bytes"};
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
  d.unpriced_calls -= before.unpriced_calls;
  for (std::size_t i = 0; i < d.attention_calls.size(); ++i)
    d.attention_calls[i] -= before.attention_calls[i];
  return d;
}

namespace {

using Record = const StepRecord&;

FieldValue number(const std::optional<double>& value) {
  return value ? FieldValue{*value} : FieldValue{};
}
FieldValue number(const std::optional<Seconds>& value) {
  return value ? FieldValue{value->value} : FieldValue{};
}
FieldValue integer(const std::optional<std::int64_t>& value) {
  return value ? FieldValue{static_cast<WideInt>(*value)} : FieldValue{};
}
FieldValue integer(const std::optional<std::uint64_t>& value) {
  return value ? FieldValue{static_cast<WideInt>(*value)} : FieldValue{};
}
FieldValue integer(const std::optional<Flops>& value) {
  return value ? FieldValue{value->value} : FieldValue{};
}
FieldValue whole(WideInt value) {
  return value;
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
FieldValue phase_seconds(Record r) {
  return number(r.phases[static_cast<std::size_t>(phase)]);
}

template <Dtype dtype>
FieldValue dtype_flops(Record r) {
  const auto flops = r.hardware_flops_by_dtype[static_cast<std::size_t>(dtype)];
  return flops == 0 ? FieldValue{} : whole(flops);
}

// One row a field.
// clang-format off
constexpr Field fields[] = {
    {"", "step", Unit::count, "optimizer step, counted from the loop's own number", [](Record r) { return whole(r.step); }},
    {"", "effective_step", Unit::count, "optimizer steps this process finished before this one", [](Record r) { return whole(r.effective_step); }},
    {"", "epoch", Unit::count, "epoch as the loop gives it", [](Record r) { return r.epoch < 0 ? FieldValue{} : whole(r.epoch); }},
    {"", "rank", Unit::count, "rank that wrote the record", [](Record r) { return whole(r.rank); }},
    {"", "devices", Unit::count, "devices the record's work ran on", [](Record r) { return whole(r.devices); }},
    {"", "micro_steps", Unit::count, "forward and backward passes accumulated into the step", [](Record r) { return whole(r.micro_steps); }},
    {"", "time_unix", Unit::unix_time, "end of the step", [](Record r) { return FieldValue{r.time_unix}; }},
    {"", "step_seconds", Unit::seconds, "wall time of the step", [](Record r) { return FieldValue{r.step_seconds.value}; }},
    {"", "tag", Unit::none, "kind of step; all but train are kept out of the averages", [](Record r) { return FieldValue{to_string(r.tag)}; }},
    {"", "mfu", Unit::ratio, "model FLOPs utilization: the least time the model's FLOPs need at peak, over the step's time", [](Record r) { return number(r.mfu); }},
    {"", "hfu", Unit::ratio, "hardware FLOPs utilization: as mfu, with recomputed and repeated work", [](Record r) { return number(r.hfu); }},
    {"", "mfu_window", Unit::ratio, "MFU over the last log interval", [](Record r) { return number(r.mfu_window); }},
    {"", "mfu_run", Unit::ratio, "MFU over the whole run, tagged steps left out", [](Record r) { return number(r.mfu_run); }},
    {"", "tflops_per_device_window", Unit::teraflops_per_second, "model TFLOP/s of one device over the last log interval", [](Record r) { return number(r.tflops_per_device_window); }},
    {"", "tflops_per_device_run", Unit::teraflops_per_second, "model TFLOP/s of one device over the whole run, tagged steps left out", [](Record r) { return number(r.tflops_per_device_run); }},
    {"", "tokens_per_second_window", Unit::per_second, "real tokens a second over the last log interval", [](Record r) { return number(r.tokens_per_second_window); }},
    {"", "tokens_per_second_run", Unit::per_second, "real tokens a second over the whole run, tagged steps left out", [](Record r) { return number(r.tokens_per_second_run); }},
    {"", "goodput", Unit::ratio, "time in train steps not done twice, over all time since the run's first start", [](Record r) { return r.run_seconds && r.productive_seconds && r.run_seconds->value > 0 ? FieldValue{*r.productive_seconds / *r.run_seconds} : FieldValue{}; }},
    {"", "run_seconds", Unit::seconds, "time since the run's first start, restarts included", [](Record r) { return number(r.run_seconds); }},
    {"", "productive_seconds", Unit::seconds, "time in train steps of the run that were not done twice", [](Record r) { return number(r.productive_seconds); }},
    {"", "between_seconds", Unit::seconds, "time from the end of the step before to the start of this one", [](Record r) { return number(r.between_seconds); }},
    {"", "model_flops", Unit::flops, "FLOPs the model needs for the step under the convention", [](Record r) { return integer(r.model_flops); }},
    {"", "hardware_flops", Unit::flops, "FLOPs that were executed for the step", [](Record r) { return integer(r.hardware_flops); }},
    {"", "recompute_flops", Unit::flops, "part of hardware_flops spent on recomputing activations", [](Record r) { return integer(r.recompute_flops); }},
    {"", "flops_source", Unit::none, "where the FLOPs came from", [](Record r) { return FieldValue{to_string(r.flops_source)}; }},
    {"", "flops_note", Unit::none, "why the FLOPs have this source, where it is not the usual one", [](Record r) { return r.flops_note.empty() ? FieldValue{} : FieldValue{r.flops_note}; }},
    {"", "counted_flops", Unit::flops, "model FLOPs that were counted, where another source is shown in their place", [](Record r) { return integer(r.counted_flops); }},
    {"", "estimated_flops", Unit::flops, "model FLOPs by the estimator", [](Record r) { return integer(r.estimated_flops); }},
    {"", "counter_flops_per_second", Unit::per_second, "FLOPs a second by hardware counters, which count what ran and not what a model needs", [](Record r) { return number(r.counter_flops_per_second); }},
    {"", "attention_pairs", Unit::none, "what was known of the attention masks: none, exact, full or unknown", [](Record r) { return FieldValue{to_string(r.attention_pairs)}; }},
    {"", "convention", Unit::none, "how model_flops counts", [](Record r) { return r.convention.empty() ? FieldValue{} : FieldValue{r.convention}; }},
    {"", "calibration_age", Unit::count, "steps since the measurement that this figure leans on", [](Record r) { return integer(r.calibration_age); }},
    {"", "calibration_error", Unit::ratio, "measured over estimated FLOPs, minus one, when last compared", [](Record r) { return number(r.calibration_error); }},
    {"", "unpriced_calls", Unit::count, "operations seen whose arguments had no price", [](Record r) { return integer(r.unpriced_calls); }},
    {"", "tflops_per_device", Unit::teraflops_per_second, "model TFLOP/s of one device", [](Record r) { return r.model_flops && r.step_seconds.value > 0 ? FieldValue{(*r.model_flops / r.step_seconds).value / r.devices / 1e12} : FieldValue{}; }},
    {"", "samples", Unit::count, "samples in the step", [](Record r) { return integer(r.samples); }},
    {"", "tokens", Unit::count, "real tokens in the step, padding left out", [](Record r) { return integer(r.tokens); }},
    {"", "padded_tokens", Unit::count, "tokens in the step with padding", [](Record r) { return integer(r.padded_tokens); }},
    {"", "visual_tokens", Unit::count, "tokens that stand for image patches", [](Record r) { return integer(r.visual_tokens); }},
    {"", "samples_per_second", Unit::per_second, "samples a second", [](Record r) { return rate(r.samples, r.step_seconds); }},
    {"", "tokens_per_second", Unit::per_second, "real tokens a second", [](Record r) { return rate(r.tokens, r.step_seconds); }},
    {"phases", "data", Unit::seconds, "waiting for the next batch", phase_seconds<Phase::data>},
    {"phases", "forward", Unit::seconds, "forward pass", phase_seconds<Phase::forward>},
    {"phases", "backward", Unit::seconds, "backward pass, recompute included", phase_seconds<Phase::backward>},
    {"phases", "optimizer", Unit::seconds, "optimizer step and gradient clipping", phase_seconds<Phase::optimizer>},
    {"phases", "communication", Unit::seconds, "collectives that nothing else hid", phase_seconds<Phase::communication>},
    {"phases", "checkpoint", Unit::seconds, "saving state", phase_seconds<Phase::checkpoint>},
    {"phases", "evaluation", Unit::seconds, "evaluating between steps", phase_seconds<Phase::evaluation>},
    {"phases", "other", Unit::seconds, "the rest of the step", phase_seconds<Phase::other>},
    {"", "overlapped_communication", Unit::seconds, "collective time that ran beside other work", [](Record r) { return number(r.overlapped_communication); }},
    {"memory_bytes", "rss", Unit::bytes, "resident memory of the process", [](Record r) { return integer(r.memory_rss_bytes); }},
    {"memory_bytes", "rss_peak", Unit::bytes, "highest resident memory so far", [](Record r) { return integer(r.memory_rss_peak_bytes); }},
    {"memory_bytes", "device", Unit::bytes, "device memory allocated now", [](Record r) { return integer(r.memory_device_bytes); }},
    {"memory_bytes", "device_peak", Unit::bytes, "highest device memory allocated", [](Record r) { return integer(r.memory_device_peak_bytes); }},
    {"memory_bytes", "device_reserved", Unit::bytes, "device memory held by the allocator", [](Record r) { return integer(r.memory_device_reserved_bytes); }},
    {"flops_by_dtype", "fp64", Unit::flops, "executed FLOPs in fp64", dtype_flops<Dtype::fp64>},
    {"flops_by_dtype", "fp32", Unit::flops, "executed FLOPs in fp32", dtype_flops<Dtype::fp32>},
    {"flops_by_dtype", "tf32", Unit::flops, "executed FLOPs in tf32", dtype_flops<Dtype::tf32>},
    {"flops_by_dtype", "bf16", Unit::flops, "executed FLOPs in bf16", dtype_flops<Dtype::bf16>},
    {"flops_by_dtype", "fp16", Unit::flops, "executed FLOPs in fp16", dtype_flops<Dtype::fp16>},
    {"flops_by_dtype", "fp8", Unit::flops, "executed FLOPs in fp8", dtype_flops<Dtype::fp8>},
    {"flops_by_dtype", "fp4", Unit::flops, "executed FLOPs in fp4", dtype_flops<Dtype::fp4>},
    {"flops_by_dtype", "int8", Unit::flops, "executed operations in int8", dtype_flops<Dtype::int8>},
    {"flops_by_dtype", "other", Unit::flops, "executed FLOPs in formats without a name here", dtype_flops<Dtype::other>},
    {"", "loss", Unit::none, "loss as the loop gives it", [](Record r) { return number(r.loss); }},
    {"", "grad_norm", Unit::none, "gradient norm as the loop gives it", [](Record r) { return number(r.grad_norm); }},
    {"", "learning_rate", Unit::none, "learning rate as the loop gives it", [](Record r) { return number(r.learning_rate); }},
    {"", "monitor_seconds", Unit::seconds, "what watching this step cost the training thread", [](Record r) { return number(r.monitor_seconds); }},
    {"", "writer_seconds", Unit::seconds, "processor time of the writing thread for this record", [](Record r) { return number(r.writer_seconds); }},
    {"", "dropped_records", Unit::count, "records lost so far because a ring was full", [](Record r) { return whole(r.dropped_records); }},
    {"", "failed_writes", Unit::count, "writes that outputs reported as failed so far", [](Record r) { return whole(r.failed_writes); }},
};
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
