// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/monitor/subscription.h>

namespace flopmeter {

std::optional<StepRecord> Subscription::next(std::chrono::milliseconds timeout) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, timeout, [this] { return size_ != 0 || closed_; });
  if (size_ == 0) return std::nullopt;
  const StepRecord record = records_[first_];
  first_ = (first_ + 1) % records_.size();
  --size_;
  return record;
}

bool Subscription::closed() const {
  const std::lock_guard lock{mutex_};
  return closed_ && size_ == 0;
}

std::uint64_t Subscription::dropped() const {
  const std::lock_guard lock{mutex_};
  return dropped_;
}

void Subscription::push(const StepRecord& record) {
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    if (size_ == records_.size()) {
      first_ = (first_ + 1) % records_.size();
      --size_;
      ++dropped_;
    }
    StepRecord& kept = records_[(first_ + size_) % records_.size()];
    kept = record;
    kept.batch = {};  // its text goes with the step
    ++size_;
  }
  changed_.notify_one();
}

void Subscription::close() {
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace flopmeter
