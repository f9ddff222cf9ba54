// SPDX-License-Identifier: Apache-2.0
#include "run_statistics.h"

#include <algorithm>

namespace flopmeter {
namespace {

constexpr int widest_window = 1000;

std::optional<double> tera(std::optional<double> value) {
  return value ? std::optional{*value / 1e12} : std::nullopt;
}

}  // namespace

RunStatistics::RunStatistics(int window, double start_unix, std::optional<EarlierRun> earlier)
    : window_(static_cast<std::size_t>(std::clamp(window, 1, widest_window))),
      start_unix_(start_unix),
      earlier_(earlier) {}

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
    window_[next_] = {};
    window_[next_].add(record);
    next_ = (next_ + 1) % window_.size();
    in_run_.add(record);
    if (!earlier_ || record.step > earlier_->last_step) productive_ += record.step_seconds.value;
  }
  // Summed from its steps each time: adding and subtracting would accumulate rounding errors.
  StepTotals in_window;
  for (const StepTotals& step : window_) in_window += step;
  record.mfu_window = in_window.mfu();
  record.mfu_run = in_run_.mfu();
  record.tflops_per_device_window = tera(in_window.flops_per_second());
  record.tflops_per_device_run = tera(in_run_.flops_per_second());
  record.tokens_per_second_window = in_window.tokens_per_second();
  record.tokens_per_second_run = in_run_.tokens_per_second();
  // A clock that was set back must not make the run shorter than the work in it.
  record.run_seconds = Seconds{std::max(record.time_unix - start_unix_, productive_)};
  record.productive_seconds = Seconds{productive_};
}

}  // namespace flopmeter
