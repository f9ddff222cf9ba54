// SPDX-License-Identifier: Apache-2.0
#include "run_statistics.h"

#include <algorithm>

namespace flopmeter {
namespace {

constexpr int widest_window = 1000;

std::optional<double> ratio(double amount, double time) {
  return time > 0 ? std::optional{amount / time} : std::nullopt;
}

}  // namespace

RunStatistics::RunStatistics(int window, double start_unix, std::optional<EarlierRun> earlier)
    : window_(static_cast<std::size_t>(std::clamp(window, 1, widest_window))),
      start_unix_(start_unix),
      earlier_(earlier) {}

RunStatistics::Entry RunStatistics::entry_of(const StepRecord& record) {
  Entry e;
  e.seconds = record.step_seconds.value;
  if (record.mfu) {
    e.ideal_seconds = *record.mfu * e.seconds;
    e.mfu_time = e.seconds;
  }
  if (record.model_flops) {
    e.tflop = static_cast<double>(record.model_flops->value) / record.devices / 1e12;
    e.flop_time = e.seconds;
  }
  if (record.tokens) {
    e.tokens = static_cast<double>(*record.tokens);
    e.token_time = e.seconds;
  }
  return e;
}

void RunStatistics::accumulate(Entry& sum, const Entry& entry) {
  sum.seconds += entry.seconds;
  sum.ideal_seconds += entry.ideal_seconds;
  sum.mfu_time += entry.mfu_time;
  sum.tflop += entry.tflop;
  sum.flop_time += entry.flop_time;
  sum.tokens += entry.tokens;
  sum.token_time += entry.token_time;
}

void RunStatistics::add(StepRecord& record) {
  if (first_) {
    first_ = false;
    // A loop that starts at its first step again is a new run, whatever the directory holds.
    if (earlier_ && record.step <= 1) earlier_.reset();
    if (earlier_) {
      start_unix_ = earlier_->first_start_unix;
      productive_ = earlier_->productive_seconds;
    }
  }
  if (record.tag == StepTag::train) {
    const Entry entry = entry_of(record);
    window_[next_] = entry;
    next_ = (next_ + 1) % window_.size();
    // Summed anew each time: adding and taking away would let rounding errors pile up over days.
    in_window_ = {};
    for (const Entry& e : window_) accumulate(in_window_, e);
    accumulate(in_run_, entry);
    if (!earlier_ || record.step > earlier_->last_step) productive_ += entry.seconds;
  }
  record.mfu_window = ratio(in_window_.ideal_seconds, in_window_.mfu_time);
  record.mfu_run = ratio(in_run_.ideal_seconds, in_run_.mfu_time);
  record.tflops_per_device_window = ratio(in_window_.tflop, in_window_.flop_time);
  record.tflops_per_device_run = ratio(in_run_.tflop, in_run_.flop_time);
  record.tokens_per_second_window = ratio(in_window_.tokens, in_window_.token_time);
  record.tokens_per_second_run = ratio(in_run_.tokens, in_run_.token_time);
  // A clock that was set back must not make the run shorter than the work in it.
  record.run_seconds = Seconds{std::max(record.time_unix - start_unix_, productive_)};
  record.productive_seconds = Seconds{productive_};
}

}  // namespace flopmeter
