// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/flop_estimator.h>
#include <flopmeter/core/step_record.h>

#include <array>
#include <cstdint>
#include <span>

namespace flopmeter {

/// What a step was fed, in fixed space.
struct ShapeNote {
  static constexpr std::size_t most_groups = 96;
  static constexpr std::size_t most_images = 32;

  std::uint16_t group_count = 0;
  std::uint16_t image_count = 0;
  bool too_many = false;  ///< did not fit: no estimate from it
  std::int64_t padded_length = 0;
  std::uint64_t signature =
      0;  ///< equal for equal shapes, whatever their order; 0: nothing is known
  std::array<SequenceGroup, most_groups> groups;
  std::array<ImageShape, most_images> images;

  void add_sequences(std::int64_t length, std::int64_t count) noexcept;
  /// Samples of which no length is known.
  void add_samples(std::int64_t count) noexcept;
  void add_image(const ImageShape& grid) noexcept;
  void set_padded_length(std::int64_t length) noexcept;

  /// Empty where nothing is known or it did not fit.
  [[nodiscard]] bool known() const noexcept { return group_count != 0 && !too_many; }
  [[nodiscard]] BatchShape view(std::int32_t micro_batches) const noexcept {
    return {.sequences = {groups.data(), group_count},
            .padded_length = padded_length,
            .images = {images.data(), image_count},
            .micro_batches = micro_batches};
  }
};

/// One finished step on its way to the writing thread.
struct Slot {
  StepRecord record;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  bool counted = false;                   ///< the record's FLOPs are the count of this step
  bool backed_off = false;                ///< counting had passed the budget
  std::optional<double> counter_flops{};  ///< by hardware counters; filled in by the writing thread
  ShapeNote shape;
};

}  // namespace flopmeter
