// SPDX-License-Identifier: Apache-2.0
//
// FlopEstimator: the seam through which a model's configuration tells what a batch costs, before or
// without counting it.
#pragma once

#include <flopmeter/core/dtype.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Sequences of one length.
struct SequenceGroup {
  std::int32_t length = 0;  ///< real tokens, visual ones included
  std::int32_t count = 0;
};

/// One image or video in patches.
struct ImageShape {
  std::int32_t t = 1;
  std::int32_t h = 0;
  std::int32_t w = 0;
};

/// What a step was fed.  Refers to the caller's memory.
struct BatchShape {
  std::span<const SequenceGroup> sequences{};
  std::int64_t padded_length = 0;  ///< length that all sequences were padded to; 0: not padded
  std::span<const ImageShape> images{};
  std::int32_t micro_batches = 1;  ///< passes that the sequences were spread over
};

/// "4x2048,1x17 padded=2048 images=1x24x24,1x16x16": all that is known of a shape, in one word a
/// part.  Empty for an empty shape.
std::string to_text(const BatchShape& shape);

/// The same, owned.
struct StoredBatch {
  std::vector<SequenceGroup> sequences;
  std::int64_t padded_length = 0;
  std::vector<ImageShape> images;
};
/// Empty where the text is not one that to_text() writes.
std::optional<StoredBatch> parse_batch(std::string_view text);

/// FLOPs of one training step by compute dtype.
struct FlopEstimate {
  std::array<std::uint64_t, dtype_count> model{};     ///< MFU's numerator
  std::array<std::uint64_t, dtype_count> hardware{};  ///< HFU's numerator
  std::uint64_t recompute = 0;                        ///< part of hardware
};

/// One rank's part of a batch's FLOPs: the ranks beyond `data_parallel` share the batch and do an
/// even part of it each.  Nothing is lost in rounding: the parts of all ranks add up.
FlopEstimate share_of(const FlopEstimate& batch, int world_size, int data_parallel, int rank);

/// Called from one thread, never the training thread; may allocate.
class FlopEstimator {
 public:
  FlopEstimator() = default;
  FlopEstimator(const FlopEstimator&) = delete;
  FlopEstimator& operator=(const FlopEstimator&) = delete;
  FlopEstimator(FlopEstimator&&) = delete;
  FlopEstimator& operator=(FlopEstimator&&) = delete;
  virtual ~FlopEstimator() = default;

  /// Empty where the shape does not tell enough.
  [[nodiscard]] virtual std::optional<FlopEstimate> estimate(const BatchShape& shape) const = 0;
  /// How the figures count; static text.
  [[nodiscard]] virtual std::string_view convention() const = 0;
};

}  // namespace flopmeter
