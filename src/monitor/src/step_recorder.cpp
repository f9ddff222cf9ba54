// SPDX-License-Identifier: Apache-2.0
#include "step_recorder.h"

#include <flopmeter/core/current_phase.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

namespace flopmeter {
namespace {

Seconds seconds(std::int64_t nanoseconds) noexcept {
  return {static_cast<double>(nanoseconds) / 1e9};
}

/// The nearest number that 64 bits hold: a loop may pass any value.
std::int64_t clamped(WideInt value) noexcept {
  using Limits = std::numeric_limits<std::int64_t>;
  return static_cast<std::int64_t>(std::clamp<WideInt>(value, Limits::min(), Limits::max()));
}

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& part) noexcept {
  if (part) sum = clamped(WideInt{sum.value_or(0)} + *part);
}

/// The record of a batch, without times and counts.
void copy_batch(const Slot& from, Slot& to) noexcept {
  to.record.samples = from.record.samples;
  to.record.tokens = from.record.tokens;
  to.record.padded_tokens = from.record.padded_tokens;
  to.record.visual_tokens = from.record.visual_tokens;
  to.record.micro_batches = from.record.micro_batches;
  to.record.batch = from.record.batch;
}

}  // namespace

StepRecorder::StepRecorder(const Options& options,
                           const Connections& connections,
                           std::string_view convention,
                           Ring<Slot>& ring)
    : clock_(connections.clock),
      source_(connections.source),
      convention_(convention),
      stated_(connections.model_flops == ModelFlops::framework  ? FlopsProvenance::framework
              : connections.model_flops == ModelFlops::estimate ? FlopsProvenance::estimate
                                                                : FlopsProvenance::user),
      rank_(connections.world.rank),
      world_size_(connections.world.size),
      data_parallel_(data_parallel_of(connections.world)),
      tracer_(connections.tracer),
      replicated_(connections.replicated),
      counts_for_group_(tensor_rank_of(connections.world) == 0),
      devices_(connections.devices),
      ring_(ring),
      device_(connections.device_clock, connections.clock, options.overhead_budget),
      plan_(options, connections.source != nullptr),
      profile_plan_(options),
      traced_step_(tracer_ == nullptr ? -1 : options.kineto_step - 1) {}

void StepRecorder::start(std::int64_t now, Kind kind) noexcept {
  const bool is_out_of_step = kind == Kind::out_of_step;
  device_.start(now == last_end_ns_ || (!is_out_of_step && !after_trace_));
  now_.record = {};
  now_.start_ns = now;
  now_.counted = false;
  clear_batch();
  if (!is_out_of_step && std::exchange(has_kept_, false)) {
    copy_batch(kept_, now_);
    has_batch_ = true;
  }
  phase_ns_ = {};
  phase_seen_ = {};
  phase_ = Phase::other;
  mark_ns_ = now;
  calls_ = 1;
  counts_before_step_ = false;
  settle_communication();
  communication_before_ = communication_now();
  now_.record.step = last_step_;
  now_.record.process_step = process_steps_;
  if (kind == Kind::pre_step) count_before_step();
}

void StepRecorder::discard(bool keep_batch) noexcept {
  device_.discard();
  stop_trace(false);
  if (profiling_) stop_profile(clock_.monotonic());
  has_kept_ = keep_batch && has_batch_;
  if (has_kept_) copy_batch(now_, kept_);
  close();
}

void StepRecorder::close() noexcept {
  measuring_.store(false, std::memory_order_relaxed);
  current_phase().store(Phase::other, std::memory_order_relaxed);
}

/// Adds the time since the last mark to the phase that was open.
void StepRecorder::mark(std::int64_t now) noexcept {
  settle_communication();
  phase_ns_[static_cast<std::size_t>(phase_)] += now - mark_ns_;
  mark_ns_ = now;
}

void StepRecorder::switch_phase(std::optional<Phase> innermost, std::int64_t now) noexcept {
  mark(now);
  phase_ = innermost.value_or(Phase::other);
  device_.switch_phase(phase_);
  if (innermost) phase_seen_[static_cast<std::size_t>(phase_)] = true;
  current_phase().store(phase_, std::memory_order_relaxed);
}

bool StepRecorder::has_batch(const StepInput& input) noexcept {
  return input.samples || input.tokens || !input.sequence_lengths.empty() || !input.images.empty();
}

void StepRecorder::clear_batch() noexcept {
  StepRecord& record = now_.record;
  record.samples = record.tokens = record.padded_tokens = record.visual_tokens = std::nullopt;
  record.micro_batches = 1;
  record.batch = {};
  has_batch_ = false;
}

void StepRecorder::tag_out_of_step(Phase phase) noexcept {
  if (now_.record.tag != StepTag::train) return;
  now_.record.tag = phase == Phase::evaluation   ? StepTag::evaluation
                    : phase == Phase::checkpoint ? StepTag::checkpoint
                                                 : StepTag::generation;
}

void StepRecorder::count_generation() noexcept {
  if (now_.record.tag == StepTag::generation && !now_.counted) start_counting();
}

void StepRecorder::add_generated(const StepInput& input) noexcept {
  add(now_.record.samples, input.samples);
  add(now_.record.tokens, input.tokens);
}

void StepRecorder::add_batch(const StepInput& input) noexcept {
  StepRecord& record = now_.record;
  add(record.samples, input.samples);
  add(record.padded_tokens, input.padded_tokens);
  add(record.visual_tokens, input.visual_tokens);
  WideInt sum = 0;
  for (const std::int64_t length : input.sequence_lengths) {
    sum += length;
    record.batch.add_sequences(length, 1);
  }
  const auto count = static_cast<std::int64_t>(input.sequence_lengths.size());
  if (count != 0) {
    record.batch.set_padded_length(input.padded_length);
    if (!input.samples) add(record.samples, count);
    if (!input.padded_tokens && input.padded_length > 0) {
      add(record.padded_tokens, clamped(WideInt{count} * input.padded_length));
    }
  } else if (input.tokens && input.samples && *input.samples > 0 &&
             *input.tokens % *input.samples == 0) {
    record.batch.add_sequences(*input.tokens / *input.samples, *input.samples);
  } else if (input.samples && !input.tokens) {
    record.batch.add_samples(*input.samples);
  }
  add(record.tokens,
      input.tokens ? input.tokens
      : count != 0 ? std::optional{clamped(sum)}
                   : std::nullopt);
  for (const ImageGrid& grid : input.images) record.batch.add_image(grid);
  if (has_batch(input)) {
    record.micro_batches = has_batch_ ? record.micro_batches + 1 : 1;
    has_batch_ = true;
  }
  if (input.flops) {
    const auto flops = static_cast<std::uint64_t>(std::max<WideInt>(input.flops->value, 0));
    record.model_flops_by_dtype[static_cast<std::size_t>(input.flops_dtype)] += flops;
    record.model_flops =
        Flops{record.model_flops.value_or(Flops{}).value + static_cast<WideInt>(flops)};
    record.flops_source = stated_;
  }
}

/// The number of micro-batches stays: it was counted as they ran.
void StepRecorder::restate_batch(const StepInput& input) noexcept {
  StepRecord& record = now_.record;
  const std::int32_t micro_batches = record.micro_batches;
  clear_batch();
  record.model_flops.reset();
  record.model_flops_by_dtype = {};
  record.flops_source = FlopsProvenance::none;
  add_batch(input);
  record.micro_batches = micro_batches;
}

void StepRecorder::begin_step(const StepInput& input, std::string_view stage) noexcept {
  StepRecord& record = now_.record;
  record.step = input.step.value_or(clamped(WideInt{last_step_} + 1));
  record.epoch = input.epoch.value_or(-1);
  record.tag = input.tag;
  record.stage = stage;
  record.coverage = coverage_;
  add_batch(input);
  start_counting();
  start_profile();
}

void StepRecorder::tag_compilation() noexcept {
  const std::uint64_t count = compilations().load(std::memory_order_relaxed);
  if (std::exchange(compilations_, count) != count && now_.record.tag == StepTag::train)
    now_.record.tag = StepTag::compile;
}

std::int64_t StepRecorder::finish_step(std::int64_t now, const StepOutcome& outcome) noexcept {
  timed_by_caller_ = outcome.interval.has_value();
  device_.end();
  if (const auto& interval = outcome.interval) {
    now = std::max(interval->first, interval->second);
    now_.start_ns = mark_ns_ = interval->first;
    phase_ns_ = {};
    phase_seen_ = {};
  }
  mark(now);
  if (outcome.batch != nullptr) restate_batch(*outcome.batch);
  now_.record.loss = outcome.loss;
  now_.record.grad_norm = outcome.grad_norm;
  now_.record.learning_rate = outcome.learning_rate;
  stop_counting(now - now_.start_ns);
  tag_compilation();
  stop_profile(now);
  stop_trace(true);
  last_step_ = now_.record.step;
  ++process_steps_;
  emit(now, !outcome.interval);
  return now;
}

std::int64_t StepRecorder::finish_out_of_step(std::int64_t now) noexcept {
  device_.end();
  mark(now);
  stop_counting(now - now_.start_ns);
  measuring_.store(false, std::memory_order_relaxed);
  emit(now, true);
  return now;
}

/// Time that a phase spent waiting for collectives belongs to communication.
void StepRecorder::add_communication() noexcept {
  settle_communication();
  const CommunicationTotals totals = communication_now();
  const std::int64_t overlapped = totals.overlapped_ns - communication_before_.overlapped_ns;
  std::int64_t elsewhere = 0;  // waits may exceed the phase: the clocks are read one after another
  std::int64_t all = 0;
  constexpr auto communication = static_cast<std::size_t>(Phase::communication);
  const auto take = [&](std::size_t from, std::int64_t amount) {
    const std::int64_t taken = std::min(amount, phase_ns_[from]);
    phase_ns_[from] -= taken;
    phase_ns_[communication] += taken;
    return amount - taken;
  };
  for (std::size_t i = 0; i < phase_count; ++i) {
    const std::int64_t waited = totals.waited_ns[i] - communication_before_.waited_ns[i];
    all += waited;
    if (i != communication) elsewhere += take(i, waited);
  }
  if (totals.collectives == 0 && all + overlapped == 0) return;
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (i != communication) elsewhere = take(i, elsewhere);
  }
  phase_seen_[communication] = true;
  now_.record.overlapped_communication = seconds(overlapped);
}

/// Replaces host times by those of the device.
void StepRecorder::set_device_times(StepRecord& record,
                                    const std::optional<DeviceTimes>& times) noexcept {
  record.host_seconds = record.step_seconds;
  record.host_phases = record.phases;
  record.phases = {};
  record.time_source = times ? TimeSource::device : TimeSource::unknown;
  if (!times) return;
  record.step_seconds = times->step;
  if (times->phases) {
    for (std::size_t i = 0; i < phase_count; ++i) {
      const Seconds time = (*times->phases)[i];
      if (record.host_phases[i] || time.value > 0) record.phases[i] = time;
    }
  }
  if (const auto& idle = times->idle) {
    record.device_idle_min_seconds = idle->min;
    record.device_idle_max_seconds = idle->max;
    record.device_idle_data = idle->data;
    record.device_idle_synchronization = idle->synchronization;
    record.device_idle_loop = idle->loop;
    record.device_idle_launch = idle->launch;
  }
  record.queue_lag_seconds = times->lag;
  record.exposed_communication_seconds = times->exposed_communication;
  record.exposed_copy_seconds = times->exposed_copy;
  record.synchronization_seconds = times->synchronization;
  record.synchronizations = times->synchronizations;
}

void StepRecorder::publish(const Slot& slot) noexcept {
  if (Slot* place = ring_.claim()) {
    place->record = slot.record;
    place->start_ns = slot.start_ns;
    place->end_ns = slot.end_ns;
    place->counted = slot.counted;
    place->backed_off = slot.backed_off;
    ring_.publish();
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

/// Publishes the records whose marks the device has reached.
void StepRecorder::poll_device() noexcept {
  device_.poll([this](Slot& slot, const std::optional<DeviceTimes>& times) {
    set_device_times(slot.record, times);
    follow_queue(slot.record, times);
    add_late_work(slot);
    publish(slot);
  });
}

void StepRecorder::finish_device(std::int64_t deadline_ns) noexcept {
  const auto waits = [this] {
    poll_device();
    read_profile();
    return device_.waiting() || ended_profile_.waits;
  };
  while (waits()) {
    if (monotonic_nanoseconds() >= deadline_ns) {
      device_.give_up();
      poll_device();
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
}

void StepRecorder::emit(std::int64_t now, bool timed) noexcept {
  StepRecord& record = now_.record;
  add_communication();
  now_.end_ns = now;
  // A train step lasts from the end of the record before it, so that steps sum to wall time; unless
  // the caller timed it.
  const std::int64_t inter_step_ns =
      last_end_ns_ != 0 ? std::max<std::int64_t>(now_.start_ns - last_end_ns_, 0) : 0;
  if (record.tag == StepTag::train && !timed_by_caller_) {
    now_.start_ns -= inter_step_ns;
    phase_ns_[static_cast<std::size_t>(Phase::other)] += inter_step_ns;
  }
  timed_by_caller_ = false;
  record.step_seconds = seconds(now - now_.start_ns);
  record.time_unix = static_cast<double>(clock_.unix_time()) / 1e9;
  record.rank = rank_;
  record.world_size = world_size_;
  record.data_parallel = data_parallel_;
  record.devices = devices_;
  record.convention = convention_;
  if (last_end_ns_ != 0) record.inter_step_seconds = seconds(inter_step_ns);
  // Storing a profile belongs to the profiled step, not to the next one.
  last_end_ns_ = record.tag == StepTag::profile ? clock_.monotonic() : now;
  if (std::find(phase_seen_.begin(), phase_seen_.end(), true) != phase_seen_.end()) {
    phase_seen_[static_cast<std::size_t>(Phase::other)] = true;
    for (std::size_t i = 0; i < phase_count; ++i) {
      if (phase_seen_[i]) record.phases[i] = seconds(phase_ns_[i]);
    }
  }
  record.dropped_records = dropped_.load(std::memory_order_relaxed);
  poll_device();
  read_profile();
  switch (device_.take(now_, timed)) {
    case DeviceSteps::Fate::deferred:
      break;
    case DeviceSteps::Fate::untimed:
      set_device_times(record, std::nullopt);
      add_late_work(now_);
      publish(now_);
      break;
    case DeviceSteps::Fate::host:
      record.time_source = TimeSource::host;
      add_late_work(now_);
      publish(now_);
      break;
  }
  steps_.fetch_add(1, std::memory_order_relaxed);
  close();
}

}  // namespace flopmeter
