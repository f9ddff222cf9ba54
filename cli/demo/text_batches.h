// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

namespace flopmeter::demo {

struct TextBatch {
  torch::Tensor tokens;
  torch::Tensor targets;
};

/// Batches of bytes from text that it makes up itself: sums, written out.
class TextBatches {
 public:
  /// `delay` is how long the (injected) slow storage takes for each batch.
  TextBatches(std::int64_t batch, std::int64_t length, std::chrono::milliseconds delay);
  TextBatch next();

 private:
  std::int64_t batch_;
  std::int64_t length_;
  std::chrono::milliseconds delay_;
  std::mt19937 random_{7};
  std::string text_;
};

}  // namespace flopmeter::demo
