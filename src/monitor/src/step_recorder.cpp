// SPDX-License-Identifier: Apache-2.0
#include "step_recorder.h"

#include <flopmeter/core/current_phase.h>

#include <pthread.h>

#include <algorithm>
#include <limits>

namespace flopmeter {
namespace {

std::uintptr_t this_thread_token() noexcept {
  return pthread_self();
}

Seconds seconds(std::int64_t nanoseconds) noexcept {
  return {static_cast<double>(nanoseconds) / 1e9};
}

/// The number nearest to `value` that 64 bits hold: a loop may say anything.
std::int64_t clamped(WideInt value) noexcept {
  using Limits = std::numeric_limits<std::int64_t>;
  return static_cast<std::int64_t>(std::clamp<WideInt>(value, Limits::min(), Limits::max()));
}

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& part) noexcept {
  if (part) sum = clamped(WideInt{sum.value_or(0)} + *part);
}

bool has_batch(const StepInput& input) noexcept {
  return input.samples || input.tokens || !input.sequence_lengths.empty() || !input.images.empty();
}

}  // namespace

StepRecorder::StepRecorder(const Options& options,
                           const Connections& connections,
                           std::string_view convention,
                           Ring<Slot>& ring)
    : clock_(connections.clock),
      source_(connections.source),
      convention_(convention),
      rank_(connections.world.rank),
      world_size_(connections.world.size),
      data_parallel_(data_parallel_of(connections.world)),
      replicated_(connections.replicated),
      counts_for_group_(tensor_rank_of(connections.world) == 0),
      devices_(connections.devices),
      ring_(ring),
      plan_(options, connections.source != nullptr),
      profile_plan_(options) {}

bool StepRecorder::bad_call() noexcept {
  misuse_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

/// Whether this thread may act on the step: it is the step's own, or there is none and one may
/// start.
bool StepRecorder::enter(bool may_start) noexcept {
  const std::uintptr_t self = this_thread_token();
  std::uintptr_t owner = owner_.load(std::memory_order_relaxed);
  if (owner == 0 && may_start) {
    if (owner_.compare_exchange_strong(owner, self, std::memory_order_acquire)) return true;
  }
  return owner == self || bad_call();
}

void StepRecorder::open(State state, std::int64_t now) noexcept {
  state_ = state;
  now_.record = {};
  now_.start_ns = now;
  now_.counted = false;
  phase_ns_ = {};
  phase_seen_ = {};
  depth_ = 0;
  too_deep_ = 0;
  mark_ns_ = now;
  calls_ = 1;
  has_batch_ = counted_early_ = false;
  settle_communication();
  communication_before_ = communication_now();
}

void StepRecorder::close() noexcept {
  state_ = State::idle;
  measuring_.store(false, std::memory_order_relaxed);
  current_phase().store(Phase::other, std::memory_order_relaxed);
  owner_.store(0, std::memory_order_release);
}

/// Gives the time since the last mark to the innermost open phase.
void StepRecorder::mark(std::int64_t now) noexcept {
  settle_communication();
  const Phase phase = depth_ == 0 ? Phase::other : stack_[depth_ - 1];
  phase_ns_[static_cast<std::size_t>(phase)] += now - mark_ns_;
  mark_ns_ = now;
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
    record.flops_source = FlopsProvenance::user;
  }
}

void StepRecorder::begin_step(const StepInput& input) noexcept {
  if (!enter(true)) return;
  const std::int64_t now = clock_.monotonic();
  if (state_ == State::open || state_ == State::aside)
    bad_call();  // the step before was left open: forget it
  if (state_ == State::early) {
    state_ = State::open;
    ++calls_;
  } else {
    open(State::open, now);
  }
  StepRecord& record = now_.record;
  record.step = input.step.value_or(clamped(WideInt{last_step_} + 1));
  record.process_step = process_steps_;
  record.epoch = input.epoch.value_or(-1);
  record.tag = input.tag;
  add_batch(input);
  start_counting();
  start_profile();
}

void StepRecorder::micro_batch(const StepInput& input) noexcept {
  if (!enter(false)) return;
  if (state_ != State::open) {
    bad_call();
    return;
  }
  ++calls_;
  add_batch(input);
}

void StepRecorder::start_counting() noexcept {
  if (source_ == nullptr) return;
  const bool given = now_.record.flops_source == FlopsProvenance::user;
  const bool wanted = !given && plan_.wants(process_steps_, now_.record.batch.signature());
  count(wanted);
  if (wanted && !counted_early_) before_ = source_->snapshot();
  now_.counted = wanted;
  measuring_.store(wanted, std::memory_order_relaxed);
}

void StepRecorder::stop_counting(std::int64_t step_ns) noexcept {
  StepRecord& record = now_.record;
  double cost_ns = calls_ * call_ns_;
  if (record.flops_source == FlopsProvenance::user)
    now_.counted = false;  // told after the count had begun
  if (now_.counted) {
    const FlopTotals work = source_->snapshot() - before_;
    std::uint64_t model = 0;
    std::uint64_t hardware = 0;
    std::uint64_t recompute = 0;
    for (std::size_t t = 0; t < dtype_count; ++t) {
      const auto& executed = work.executed[t];
      record.model_flops_by_dtype[t] = work.model[t][0] + work.model[t][1];
      record.hardware_flops_by_dtype[t] = executed[0] + executed[1] + executed[2];
      model += record.model_flops_by_dtype[t];
      hardware += record.hardware_flops_by_dtype[t];
      recompute += executed[static_cast<std::size_t>(Pass::recompute)];
    }
    record.model_flops = Flops{static_cast<WideInt>(model)};
    record.hardware_flops = Flops{static_cast<WideInt>(hardware)};
    record.recompute_flops = Flops{static_cast<WideInt>(recompute)};
    record.unsupported_op_calls = work.unsupported_op_calls;
    if (replicated_)
      record.replicated_flops =
          Flops{counts_for_group_ ? 0 : static_cast<WideInt>(work.replicated)};
    record.flops_source = FlopsProvenance::counted;
    for (std::size_t i = work.attention_calls.size();
         i-- > 0;) {  // the least certain kind speaks for the step
      if (work.attention_calls[i] == 0) continue;
      record.attention_pairs = static_cast<AttentionPairs>(i);
      break;
    }
    const double counting_ns = static_cast<double>(work.calls) * source_->nanoseconds_per_call();
    cost_ns += counting_ns;
    plan_.counted(process_steps_,
                  now_.record.batch.signature(),
                  counting_ns / static_cast<double>(std::max<std::int64_t>(step_ns, 1)));
  }
  now_.backed_off = plan_.backed_off();
  record.monitor_seconds = Seconds{cost_ns / 1e9};
}

void StepRecorder::end_step(const StepOutcome& outcome) noexcept {
  if (!enter(false)) return;
  if (state_ != State::open) {
    bad_call();
    return;
  }
  const auto& given = outcome.interval;
  const std::int64_t now = given ? std::max(given->first, given->second) : clock_.monotonic();
  ++calls_;
  if (given) take_start(given->first);
  timed_by_caller_ = given.has_value();
  if (depth_ != 0) bad_call();  // phases left open end with the step
  mark(now);
  now_.record.loss = outcome.loss;
  now_.record.grad_norm = outcome.grad_norm;
  now_.record.learning_rate = outcome.learning_rate;
  stop_counting(now - now_.start_ns);
  stop_profile(now);
  last_step_ = now_.record.step;
  ++process_steps_;
  emit(now);
}

void StepRecorder::abandon_step() noexcept {
  if (!enter(false)) return;
  if (profiling_) stop_profile(clock_.monotonic());
  close();
}

/// Time that a phase spent waiting for collectives belongs to communication.
void StepRecorder::note_communication() noexcept {
  settle_communication();
  const CommunicationTotals totals = communication_now();
  const std::int64_t overlapped = totals.overlapped_ns - communication_before_.overlapped_ns;
  std::int64_t elsewhere = 0;  // more waited than the phase took: the clocks are read one by one
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

void StepRecorder::emit(std::int64_t now) noexcept {
  StepRecord& record = now_.record;
  note_communication();
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
  if (Slot* slot = ring_.claim()) {
    slot->record = record;
    slot->start_ns = now_.start_ns;
    slot->end_ns = now;
    slot->counted = now_.counted;
    slot->backed_off = now_.backed_off;
    ring_.publish();
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  steps_.fetch_add(1, std::memory_order_relaxed);
  close();
}

void StepRecorder::begin_phase(Phase phase) noexcept {
  if (!enter(true)) return;
  const std::int64_t now = clock_.monotonic();
  const bool aside = phase == Phase::evaluation || phase == Phase::checkpoint;
  if (state_ == State::idle) {
    open(aside ? State::aside : State::early, now);
    if (!aside) count_early();
    now_.record.step = last_step_;
    now_.record.process_step = process_steps_;
  } else {
    ++calls_;
    mark(now);
  }
  if (aside && now_.record.tag == StepTag::train) {
    now_.record.tag = phase == Phase::evaluation ? StepTag::evaluation : StepTag::checkpoint;
  }
  if (depth_ == most_depth) {
    ++too_deep_;
    bad_call();
    return;
  }
  stack_[depth_++] = phase;
  phase_seen_[static_cast<std::size_t>(phase)] = true;
  current_phase().store(phase, std::memory_order_relaxed);
}

void StepRecorder::end_phase(Phase phase) noexcept {
  if (!enter(false)) return;
  if (too_deep_ != 0) {
    --too_deep_;
    return;
  }
  const auto begin = stack_.begin();
  const auto at = std::find(std::make_reverse_iterator(begin + static_cast<std::ptrdiff_t>(depth_)),
                            stack_.rend(),
                            phase);
  if (at == stack_.rend()) {
    bad_call();
    return;
  }
  const std::int64_t now = clock_.monotonic();
  ++calls_;
  mark(now);
  const auto depth = static_cast<std::size_t>(std::distance(at, stack_.rend())) - 1;
  if (depth + 1 != depth_) bad_call();  // phases inside it were left open: they end here too
  depth_ = depth;
  current_phase().store(depth_ == 0 ? Phase::other : stack_[depth_ - 1], std::memory_order_relaxed);
  if (state_ == State::aside && depth_ == 0) {
    now_.record.monitor_seconds = Seconds{calls_ * call_ns_ / 1e9};
    emit(now);
  }
}

void StepRecorder::tag_step(StepTag tag) noexcept {
  if (enter(false)) now_.record.tag = tag;
}

void StepRecorder::calibrate() noexcept {
  constexpr int pairs = 200;
  // A pair of phase marks is the commonest call; begin and end of a step cost about as much.
  const std::int64_t start = monotonic_nanoseconds();
  begin_phase(Phase::data);
  for (int i = 0; i < pairs; ++i) {
    begin_phase(Phase::forward);
    end_phase(Phase::forward);
  }
  abandon_step();
  call_ns_ = static_cast<double>(monotonic_nanoseconds() - start) / (2 * pairs);
}

}  // namespace flopmeter
