// SPDX-License-Identifier: Apache-2.0
#include "run_statistics.h"

#include <algorithm>

namespace flopmeter {

void RunStatistics::add(StepRecord& record) {
  if (first_) {
    first_ = false;
    // A loop that starts again at its first step is a new run, regardless of the directory.
    if (earlier_ && record.step <= 1) earlier_.reset();
    if (earlier_) {
      start_unix_ = earlier_->first_start_unix;
      productive_ = earlier_->productive_seconds;
    }
  }
  if (record.tag == StepTag::train && (!earlier_ || record.step > earlier_->last_step))
    productive_ += record.step_seconds.value;
  // If the clock was set back, the run must not become shorter than the work in it.
  record.run_seconds = Seconds{std::max(record.time_unix - start_unix_, productive_)};
  record.productive_seconds = Seconds{productive_};
}

}  // namespace flopmeter
