// SPDX-License-Identifier: Apache-2.0
#include "run_statistics.h"

#include <algorithm>

namespace flopmeter {

void RunStatistics::add(StepRecord& record, std::int64_t end_ns) {
  if (first_) {
    first_ = false;
    // A loop that starts again at its first step is a new run, regardless of the directory.
    if (earlier_ && record.step <= 1) earlier_.reset();
    if (earlier_) {
      productive_ = earlier_->productive_seconds;
      before_ = std::max(start_unix_ - earlier_->first_start_unix, productive_);
    }
  }
  if (record.tag == StepTag::train && (!earlier_ || record.step > earlier_->last_step))
    productive_ += record.step_seconds.value;
  const double elapsed = static_cast<double>(end_ns - start_ns_) / 1e9;
  record.run_seconds = Seconds{std::max(before_ + elapsed, productive_)};
  record.productive_seconds = Seconds{productive_};
}

}  // namespace flopmeter
