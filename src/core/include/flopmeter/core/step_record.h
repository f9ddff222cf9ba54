// SPDX-License-Identifier: Apache-2.0
//
// StepRecord: everything known about one training step, and the list that names its fields.  Every
// sink, the metric reference, the Prometheus help text and the dashboard follow from that list.
#pragma once

#include <flopmeter/core/flop_counter.h>
#include <flopmeter/core/phase.h>
#include <flopmeter/core/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace flopmeter {

/// Where a record's FLOPs came from.
enum class FlopsProvenance : std::uint8_t {
  none,        ///< unknown
  counted,     ///< the op stream of this very step
  calibrated,  ///< estimate corrected by an earlier count of the same shapes
  estimate,    ///< from the model's configuration
  hardware,    ///< hardware counters: a hardware figure, not a model's
  received,    ///< measured by rank 0 and broadcast
  given,       ///< by the caller
};

/// Steps that would spoil an average are tagged and kept out of it.
enum class StepTag : std::uint8_t { train, profile, compile, evaluation, checkpoint, generation };

std::string_view to_string(FlopsProvenance source);
std::string_view to_string(StepTag tag);

/// One finished step of one rank.  Trivially copyable: it passes through a fixed ring.  A quantity
/// that was not measured is empty, never zero or -1.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t process_step = 0;  ///< optimizer steps this process has finished before this one
  std::int32_t epoch = -1;        ///< negative: the loop did not say
  std::int32_t rank = 0;
  std::int32_t world_size = 1;     ///< ranks of the run
  std::int32_t data_parallel = 1;  ///< of them, those that work on different samples
  std::int32_t devices = 1;        ///< devices this record's work ran on
  std::int32_t micro_batches = 1;  ///< forward/backward passes accumulated into the step
  double time_unix = 0;            ///< end of the step, seconds since 1970
  Seconds step_seconds;
  StepTag tag = StepTag::train;
  std::string_view stage;  ///< part of the run that the loop names; points at static text

  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> tokens;         ///< real tokens
  std::optional<std::int64_t> padded_tokens;  ///< with padding
  std::optional<std::int64_t> visual_tokens;
  /// The batch's shape as to_text(BatchShape) writes it; valid while a sink is called, else empty.
  std::string_view batch;

  std::optional<Flops> model_flops;      ///< MFU's numerator
  std::optional<Flops> hardware_flops;   ///< HFU's numerator
  std::optional<Flops> recompute_flops;  ///< part of hardware_flops
  /// Part of model_flops that another rank of the tensor-parallel group counts as its own.
  std::optional<Flops> replicated_flops;
  /// Model and hardware FLOPs by compute dtype; they sum to the two above where those are known.
  std::array<std::uint64_t, dtype_count> model_flops_by_dtype{};
  std::array<std::uint64_t, dtype_count> hardware_flops_by_dtype{};
  FlopsProvenance flops_source = FlopsProvenance::none;
  std::string_view flops_note;           ///< why the FLOPs have this source; points at static text
  std::optional<Flops> counted_flops;    ///< the count, where another source is shown in its place
  std::optional<Flops> estimated_flops;  ///< model FLOPs by the estimator, where there is one
  std::optional<double> counter_flops_per_second;  ///< by hardware counters: not a model's figure
  AttentionPairs attention_pairs = AttentionPairs::none;
  std::string_view convention;                  ///< of model_flops; points at static text
  std::optional<std::int64_t> calibration_age;  ///< steps since the measurement this one leans on
  std::optional<double> calibration_error;      ///< measured over estimated, minus one
  std::optional<std::uint64_t> unsupported_op_calls;

  std::optional<double> mfu;
  std::optional<double> hfu;
  std::optional<double> mfu_window;  ///< over the last log interval
  std::optional<double> mfu_run;     ///< over the whole run, tagged steps left out
  std::optional<double> tflops_per_device_window;
  std::optional<double> tflops_per_device_run;
  std::optional<double> tokens_per_second_window;
  std::optional<double> tokens_per_second_run;
  std::optional<Seconds>
      inter_step_seconds;              ///< from the end of the step before to the start of this one
  std::optional<Seconds> run_seconds;  ///< since the run's first start, restarts included
  std::optional<Seconds> productive_seconds;  ///< train steps of the run that were not done twice

  std::array<std::optional<Seconds>, phase_count> phases{};
  std::optional<Seconds> overlapped_communication;
  std::optional<std::int64_t> data_wait_samples;  ///< looks at the process while it waited for data
  std::optional<std::int64_t> data_wait_busy_samples;  ///< those in which it or a loader worker ran
  std::optional<std::int64_t> memory_rss_bytes;
  std::optional<std::int64_t> memory_rss_peak_bytes;
  std::optional<std::int64_t> memory_device_bytes;
  std::optional<std::int64_t> memory_device_peak_bytes;
  std::optional<std::int64_t> memory_device_reserved_bytes;

  std::optional<double> gpu_utilization;  ///< as the GPU itself has it, in the last moments
  std::optional<double> gpu_tensor_active;
  std::optional<double> gpu_dram_active;
  std::optional<double> gpu_power_watts;
  std::optional<double> gpu_sm_clock_hertz;
  std::optional<std::uint64_t> gpu_throttle_reasons;
  std::optional<std::int64_t> gpu_memory_used_bytes;

  std::optional<double> loss;
  std::optional<double> grad_norm;
  std::optional<double> learning_rate;

  std::optional<Seconds> monitor_seconds;  ///< what watching this step cost the training thread
  std::optional<Seconds> writer_seconds;   ///< processor time of the writing thread for this record
  std::uint64_t dropped_records = 0;       ///< lost so far because a ring was full
  std::uint64_t failed_writes = 0;         ///< writes that sinks reported as failed so far
};

/// How a field's value is meant, and so how it is shown.
enum class Unit : std::uint8_t {
  none,
  count,
  seconds,
  unix_time,
  flops,
  teraflops_per_second,
  per_second,
  ratio,
  bytes
};
std::string_view to_string(Unit unit);

/// A value as sinks see it; monostate where it was not measured.
using FieldValue = std::variant<std::monostate, WideInt, double, std::string_view>;

/// Describes one value of a record.
struct Field {
  std::string_view group;  ///< empty, or the object it is nested in ("phases")
  std::string_view name;   ///< snake_case, the same in every sink; unique together with the group
  Unit unit = Unit::none;
  std::string_view help;  ///< one sentence, without a full stop
  FieldValue (*read)(const StepRecord&) = nullptr;
  /// Puts a value back, as a reader of stored records does; false where it is not of the field's
  /// kind.  Null for a field that follows from others.
  bool (*set)(StepRecord&, const FieldValue&) = nullptr;
};

/// All fields, in the order in which sinks write them.
std::span<const Field> step_fields();

/// The field `name` (or "group.name"); null where there is none.
const Field* find_step_field(std::string_view name);

/// The value as a double where it is a number.
std::optional<double> as_number(const FieldValue& value);

}  // namespace flopmeter
