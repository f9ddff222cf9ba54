// SPDX-License-Identifier: Apache-2.0
#include "text_batches.h"

#include <thread>

namespace flopmeter::demo {

TextBatches::TextBatches(std::int64_t batch, std::int64_t length, std::chrono::milliseconds delay)
    : batch_(batch), length_(length), delay_(delay) {
  while (text_.size() < (1U << 16U)) {
    const unsigned a = random_() % 100;
    const unsigned b = random_() % 100;
    text_ +=
        std::to_string(a) + " and " + std::to_string(b) + " make " + std::to_string(a + b) + ". ";
  }
}

TextBatch TextBatches::next() {
  if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
  auto bytes = torch::empty({batch_, length_ + 1}, torch::kLong);
  auto cells = bytes.accessor<std::int64_t, 2>();
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::size_t start = random_() % (text_.size() - static_cast<std::size_t>(length_) - 1);
    for (std::int64_t i = 0; i <= length_; ++i) {
      cells[row][i] = static_cast<unsigned char>(text_[start + static_cast<std::size_t>(i)]);
    }
  }
  return {bytes.slice(1, 0, length_).contiguous(), bytes.slice(1, 1, length_ + 1).contiguous()};
}

}  // namespace flopmeter::demo
