// SPDX-License-Identifier: Apache-2.0
//
// StepRecord: everything known about one step.  step_fields.h lists its fields for all outputs.
#pragma once

#include <flopmeter/core/attention_pairs.h>
#include <flopmeter/core/dtype.h>
#include <flopmeter/core/fixed_batch.h>
#include <flopmeter/core/phase.h>
#include <flopmeter/core/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopmeter {

/// Where a record's FLOPs come from.
enum class FlopsProvenance : std::uint8_t {
  none,        ///< unknown
  counted,     ///< the op stream of this step
  calibrated,  ///< an estimate corrected by an earlier count of the same shapes
  estimate,    ///< the model's configuration
  hardware,    ///< hardware counters: hardware FLOPs only
  broadcast,   ///< measured by rank 0 and broadcast
  user,        ///< stated by the caller
  framework,   ///< the training framework's own function
  /// A count that equals the estimate to the integer; the model FLOPs are those of the estimate for
  /// the real lengths.
  counted_catalog,
};
inline constexpr std::size_t flops_provenance_count = 9;

/// The kind of a record.  Averages use `train` only.
enum class StepTag : std::uint8_t { train, profile, compile, evaluation, checkpoint, generation };
inline constexpr std::size_t step_tag_count = 6;

/// Which clock measured the step and its phases.
enum class TimeSource : std::uint8_t { unknown, host, device };
inline constexpr std::size_t time_source_count = 3;

std::string_view to_string(FlopsProvenance source);
std::string_view to_string(StepTag tag);
std::string_view to_string(TimeSource source);

/// One finished step of one rank, or the sum of several (see merge in step_fields.h).  It passes
/// through a fixed ring: copying it neither allocates nor throws.  A quantity that was not measured
/// is empty, never 0 or -1.  Text points at memory that lasts as long as the process (see
/// static_text.h).
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t process_step = 0;  ///< optimizer steps that this process finished before
  std::int32_t steps = 1;         ///< in this record; above 1 only under load (see merge())
  std::int32_t epoch = -1;        ///< negative: unknown
  std::int32_t rank = 0;
  std::int32_t world_size = 1;     ///< ranks of the run
  std::int32_t data_parallel = 1;  ///< ranks that process different samples
  std::int32_t devices = 1;        ///< devices that this record's work ran on
  std::int32_t micro_batches = 1;  ///< forward and backward passes accumulated into the step
  double time_unix = 0;            ///< end of the step, seconds since 1970
  Seconds step_seconds;
  StepTag tag = StepTag::train;
  std::string_view stage;  ///< set by the program, such as "rollout"; empty: none

  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> tokens;         ///< without padding
  std::optional<std::int64_t> padded_tokens;  ///< with padding
  std::optional<std::int64_t> visual_tokens;
  FixedBatch batch;

  std::optional<Flops> model_flops;       ///< numerator of MFU
  std::optional<Flops> hardware_flops;    ///< numerator of HFU
  std::optional<Flops> recompute_flops;   ///< part of hardware_flops
  std::optional<Flops> replicated_flops;  ///< part of model_flops that another rank counts too
  std::optional<Flops> bounded_flops;     ///< part of model_flops that is an upper bound
  /// By compute dtype; they sum to model_flops and hardware_flops if those are known.
  std::array<std::uint64_t, dtype_count> model_flops_by_dtype{};
  std::array<std::uint64_t, dtype_count> hardware_flops_by_dtype{};
  FlopsProvenance flops_source = FlopsProvenance::none;
  std::string_view flops_note;           ///< why the FLOPs have this source
  std::optional<Flops> counted_flops;    ///< the count, if another source is shown instead
  std::optional<Flops> estimated_flops;  ///< model FLOPs of the estimator
  std::optional<double> counter_flops_per_second;  ///< of hardware counters
  AttentionPairs attention_pairs = AttentionPairs::none;
  std::string_view convention;                  ///< of model_flops
  std::optional<std::int64_t> calibration_age;  ///< steps since the measurement in use
  std::optional<double> calibration_error;      ///< measured over estimated, minus one
  std::optional<std::uint64_t> unsupported_op_calls;
  std::optional<double> coverage;  ///< time in supported operators over compute time, 0 to 1

  std::optional<Seconds> ideal_seconds;  ///< of the model FLOPs at peak, on all devices
  std::optional<double> mfu;
  std::optional<double> hfu;
  std::optional<Seconds> inter_step_seconds;  ///< of the step, before its first event
  std::optional<Seconds> run_seconds;         ///< since the first start of the run
  std::optional<Seconds> productive_seconds;  ///< in train steps that were not repeated

  TimeSource time_source = TimeSource::unknown;
  std::array<std::optional<Seconds>, phase_count> phases{};
  std::optional<Seconds> host_seconds;  ///< of the step by the host clock, if device time is shown
  std::array<std::optional<Seconds>, phase_count> host_phases{};
  std::optional<Seconds> device_idle_min_seconds;  ///< proven bounds of the device's idle time
  std::optional<Seconds> device_idle_max_seconds;
  /// The upper bound by what the host did meanwhile, apart from blocking copies.
  std::optional<Seconds> device_idle_data;             ///< waited for data
  std::optional<Seconds> device_idle_synchronization;  ///< was blocked on the device
  std::optional<Seconds> device_idle_loop;             ///< ran code of the loop
  std::optional<Seconds> device_idle_launch;           ///< launched work
  std::optional<Seconds> queue_lag_seconds;  ///< device time minus host time at the step's end
  std::optional<Seconds> overlapped_communication;
  std::optional<Seconds> exposed_communication_seconds;
  std::optional<Seconds> exposed_copy_seconds;
  std::optional<Seconds> synchronization_seconds;  ///< host time blocked on the device
  std::optional<std::int64_t> synchronizations;
  std::optional<std::int64_t> data_wait_samples;       ///< of the process while it waited for data
  std::optional<std::int64_t> data_wait_busy_samples;  ///< in which it or a loader worker ran

  std::optional<Seconds> run_queue_seconds;           ///< ready, but the processors were busy
  std::optional<Seconds> throttled_seconds;           ///< by the processor quota of the cgroup
  std::optional<Seconds> stolen_seconds;              ///< by the hypervisor
  std::optional<Seconds> garbage_collection_seconds;  ///< of Python
  std::optional<Seconds> interpreter_lock_seconds;    ///< waits for Python's lock, from samples

  std::optional<std::int64_t> memory_rss_bytes;
  std::optional<std::int64_t> memory_rss_peak_bytes;
  std::optional<std::int64_t> memory_device_bytes;
  std::optional<std::int64_t> memory_device_peak_bytes;
  std::optional<std::int64_t> memory_device_reserved_bytes;

  std::optional<double> gpu_utilization;
  std::optional<double> gpu_tensor_active;
  std::optional<double> gpu_dram_active;
  std::optional<double> gpu_power_watts;
  std::optional<double> gpu_sm_clock_hertz;
  std::optional<std::uint64_t> gpu_throttle_reasons;
  std::optional<std::int64_t> gpu_memory_used_bytes;

  std::optional<double> loss;
  std::optional<double> grad_norm;
  std::optional<double> learning_rate;

  std::optional<Seconds> monitor_seconds;  ///< of the training thread, spent in the monitor
  std::optional<Seconds> writer_seconds;   ///< CPU time of the writer thread for this record
  std::uint64_t dropped_records = 0;       ///< so far, because the ring was full
  std::uint64_t failed_writes = 0;         ///< of all sinks so far
};

}  // namespace flopmeter
