// SPDX-License-Identifier: Apache-2.0
//
// Batch: the shape of the inputs of one step, as estimators take it.
#pragma once

#include <flopmeter/core/wide_int.h>

#include <cstdint>
#include <vector>

namespace flopmeter {

/// Sequences of one length.
struct SequenceGroup {
  std::int64_t length = 0;  ///< real tokens, visual tokens included
  std::int64_t count = 1;
};

/// Images or videos of one size in patches: frames, rows, columns.
struct ImageGrid {
  std::int64_t t = 1;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t count = 1;
};

/// Packed documents are separate sequences.
struct Batch {
  std::vector<SequenceGroup> sequences{};
  std::vector<ImageGrid> images{};
  std::int64_t padded_length = 0;  ///< of every sequence after padding; 0: not padded

  static Batch uniform(std::int64_t count, std::int64_t length) { return {{{length, count}}}; }

  [[nodiscard]] WideInt count() const;
  [[nodiscard]] WideInt tokens() const;
};

}  // namespace flopmeter
