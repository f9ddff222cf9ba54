// SPDX-License-Identifier: Apache-2.0
//
// The FLOPs of a step: when StepRecorder counts, and what it stores in the record.
#include "step_recorder.h"

#include <algorithm>

namespace flopmeter {

/// Work before a step begins belongs to the step, as does the time before it.
void StepRecorder::count_before_step() noexcept {
  counts_before_step_ = source_ != nullptr && plan_.wants(process_steps_, 0);
  if (!counts_before_step_) return;
  count(true);
  before_ = source_->snapshot();
  late_before_ = source_->late_calls();
}

void StepRecorder::start_counting() noexcept {
  if (source_ == nullptr) return;
  const bool stated = now_.record.flops_source == FlopsProvenance::user;
  const bool wanted = !stated && plan_.wants(process_steps_, now_.record.batch.signature());
  count(wanted);
  if (wanted && !counts_before_step_) {
    before_ = source_->snapshot();
    late_before_ = source_->late_calls();
  }
  now_.counted = wanted;
  now_.record.flops_note = source_->note();
  measuring_.store(wanted, std::memory_order_relaxed);
}

/// Allocates for a new note only.
std::string_view StepRecorder::unsupported_note() const noexcept try {
  return source_->unsupported_note();
} catch (...) {  // no memory
  return "unsupported operators";
}

/// If the input states the model FLOPs, the counted ones are stored in counted_flops.
void StepRecorder::add_counted_work(const FlopTotals& work) noexcept {
  StepRecord& record = now_.record;
  const bool is_stated = record.flops_source != FlopsProvenance::none;
  std::uint64_t model = 0;
  std::uint64_t hardware = 0;
  std::uint64_t recompute = 0;
  for (std::size_t t = 0; t < dtype_count; ++t) {
    const auto& executed = work.executed[t];
    const std::uint64_t counted = work.model[t][0] + work.model[t][1];
    if (!is_stated) record.model_flops_by_dtype[t] = counted;
    record.hardware_flops_by_dtype[t] = executed[0] + executed[1] + executed[2];
    model += counted;
    hardware += record.hardware_flops_by_dtype[t];
    recompute += executed[static_cast<std::size_t>(Pass::recompute)];
  }
  (is_stated ? record.counted_flops : record.model_flops) = Flops{static_cast<WideInt>(model)};
  record.hardware_flops = Flops{static_cast<WideInt>(hardware)};
  record.recompute_flops = Flops{static_cast<WideInt>(recompute)};
  record.unsupported_op_calls = work.unsupported_op_calls;
  record.bounded_flops = Flops{static_cast<WideInt>(work.bounded)};
  if (work.unsupported_op_calls != 0) record.flops_note = unsupported_note();
  if (replicated_)
    record.replicated_flops = Flops{counts_for_group_ ? 0 : static_cast<WideInt>(work.replicated)};
  if (!is_stated) record.flops_source = FlopsProvenance::counted;
  // The least certain kind describes the step.
  for (std::size_t i = work.attention_calls.size(); i-- > 0;) {
    if (work.attention_calls[i] == 0) continue;
    record.attention_pairs = static_cast<AttentionPairs>(i);
    break;
  }
}

void StepRecorder::stop_counting(std::int64_t step_ns) noexcept {
  StepRecord& record = now_.record;
  double cost_ns = calls_ * call_ns_ + static_cast<double>(device_.cost_ns());
  if (record.flops_source == FlopsProvenance::user)
    now_.counted = false;  // the caller stated them after the count had begun
  // A counter with a note may be unable to count now: no call is then not the same as no work.
  if (now_.counted && !source_->note().empty() && source_->snapshot().calls == before_.calls)
    now_.counted = false;
  if (now_.counted) {
    const FlopTotals work = source_->snapshot() - before_;
    now_.first_late_call = late_before_;
    now_.last_late_call = source_->late_calls();
    add_counted_work(work);
    const double counting_ns = static_cast<double>(work.calls) * source_->nanoseconds_per_call();
    cost_ns += counting_ns;
    if (record.tag != StepTag::generation)
      plan_.counted(process_steps_,
                    record.batch.signature(),
                    counting_ns / static_cast<double>(std::max<std::int64_t>(step_ns, 1)));
  }
  now_.backed_off = plan_.backed_off();
  record.monitor_seconds = Seconds{cost_ns / 1e9};
}

/// Replaces upper bounds of FLOPs by the exact work that the device has reported.
void StepRecorder::add_late_work(Slot& slot) noexcept {
  if (slot.first_late_call == slot.last_late_call) return;
  const FlopTotals work = source_->late_work(slot.first_late_call, slot.last_late_call);
  StepRecord& record = slot.record;
  const auto add = [](std::optional<Flops>& flops, std::uint64_t difference) {
    if (flops) flops->value += static_cast<std::int64_t>(difference);
  };
  const bool is_stated = record.counted_flops.has_value();
  for (std::size_t t = 0; t < dtype_count; ++t) {
    const std::uint64_t model = work.model[t][0] + work.model[t][1];
    const std::uint64_t recompute = work.executed[t][static_cast<std::size_t>(Pass::recompute)];
    const std::uint64_t executed = work.executed[t][0] + work.executed[t][1] + recompute;
    if (!is_stated) record.model_flops_by_dtype[t] += model;
    record.hardware_flops_by_dtype[t] += executed;
    add(is_stated ? record.counted_flops : record.model_flops, model);
    add(record.hardware_flops, executed);
    add(record.recompute_flops, recompute);
  }
  add(record.bounded_flops, work.bounded);
  if (record.attention_pairs == AttentionPairs::unknown && record.bounded_flops == Flops{0})
    record.attention_pairs = AttentionPairs::exact;
}

}  // namespace flopmeter
