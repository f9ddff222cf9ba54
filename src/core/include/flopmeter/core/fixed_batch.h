// SPDX-License-Identifier: Apache-2.0
//
// FixedBatch: a Batch in fixed memory.  The training thread fills it and the record carries it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

namespace flopmeter {

struct Batch;
struct ImageGrid;

/// Groups sequences by length.  If there are more groups or images than fit, `known()` is false.
/// A copy copies only what is in use.
class FixedBatch {  // NOLINT(cppcoreguidelines-special-member-functions): a move is a copy
 public:
  static constexpr std::size_t most_groups = 96;
  static constexpr std::size_t most_images = 32;

  FixedBatch() noexcept {}  // NOLINT: the arrays stay uninitialized
  FixedBatch(const FixedBatch& other) noexcept { *this = other; }  // NOLINT: likewise
  FixedBatch& operator=(const FixedBatch& other) noexcept;
  ~FixedBatch() = default;

  void add_sequences(std::int64_t length, std::int64_t count) noexcept;
  /// Adds samples of unknown length.
  void add_samples(std::int64_t count) noexcept;
  void add_image(const ImageGrid& grid) noexcept;
  void set_padded_length(std::int64_t length) noexcept;

  /// False if no length is known or the storage was too small.
  [[nodiscard]] bool known() const noexcept { return group_count_ != 0 && !overflow_; }
  /// Equal for equal shapes in any order; 0 if nothing is known.
  [[nodiscard]] std::uint64_t signature() const noexcept { return signature_; }
  /// The same shape in ordinary memory; empty unless known().
  [[nodiscard]] Batch batch() const;

 private:
  struct Group {
    std::int32_t length, count;
  };
  struct Grid {
    std::int32_t t, h, w;
  };

  std::uint16_t group_count_ = 0;
  std::uint16_t image_count_ = 0;
  bool overflow_ = false;
  std::int64_t padded_length_ = 0;
  std::uint64_t signature_ = 0;
  std::array<Group, most_groups> groups_;
  std::array<Grid, most_images> images_;

  friend std::string to_text(const FixedBatch& batch);
};

/// "4x2048,1x17 padded=2048 images=1x24x24,1x16x16": the form that records store, so that a run can
/// be recounted under another convention.  Empty unless known().
std::string to_text(const FixedBatch& batch);

/// The inverse of to_text().  Empty if `text` has another form or more groups than fit.
std::optional<FixedBatch> parse_batch(std::string_view text);

}  // namespace flopmeter
