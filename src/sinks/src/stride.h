// SPDX-License-Identifier: Apache-2.0
//
// Bounds for data that grows with the run: keep every record, then every second, every fourth, …
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flopmeter {

/// Selects the records of a file of bounded size.  The first stage may fill half of the limit; each
/// further stage has half the room and twice the stride of the one before, so it lasts as many
/// steps, and the sum stays within the limit for any length of the run.
class DiskStride {
 public:
  /// A sixteenth is reserved for the last record of each stage, which may exceed its end.
  explicit DiskStride(std::int64_t limit_bytes)
      : room_(limit_bytes - limit_bytes / 16), stage_end_(room_ / 2) {}

  /// Whether to keep the next record.
  bool keep() { return (count_++ & (stride_ - 1)) == 0; }
  /// Adds the size of a kept record.
  void wrote(std::int64_t bytes) {
    used_ += bytes;
    if (used_ < stage_end_ || stride_ >= (std::uint64_t{1} << 62U)) return;
    stage_end_ += (room_ - stage_end_) / 2;
    stride_ *= 2;
    count_ = 0;
  }
  [[nodiscard]] std::uint64_t stride() const { return stride_; }

 private:
  std::int64_t room_;
  std::int64_t stage_end_;
  std::int64_t used_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t stride_ = 1;
};

/// At most `most` rows in memory that is allocated once: when it is full, every second row is
/// dropped, and from then on every second row is kept.
template <class Row>
class BoundedRows {
 public:
  explicit BoundedRows(std::size_t most) : rows_(most) {}

  void add(const Row& row) {
    if (count_++ % stride_ != 0) return;
    if (size_ == rows_.size()) {
      size_ = (size_ + 1) / 2;
      for (std::size_t i = 1; i < size_; ++i) rows_[i] = rows_[2 * i];
      stride_ *= 2;
      if ((count_ - 1) % stride_ != 0) return;
    }
    rows_[size_++] = row;
  }
  [[nodiscard]] std::span<const Row> rows() const { return {rows_.data(), size_}; }
  [[nodiscard]] std::uint64_t stride() const { return stride_; }

 private:
  std::vector<Row> rows_;
  std::size_t size_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t stride_ = 1;
};

}  // namespace flopmeter
