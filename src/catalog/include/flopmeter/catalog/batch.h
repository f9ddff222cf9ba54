// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flopmeter/core/wide_int.h>

#include <cstdint>
#include <vector>

namespace flopmeter {

/// Images or videos of one size in patches: frames, rows, columns.
struct ImageGrid {
  std::int64_t t = 1;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t count = 1;
};

/// Sequences of equal length.
struct SequenceRun {
  std::int64_t length = 0;  ///< in tokens, including visual tokens
  std::int64_t count = 1;
};

/// Batch of one step.  Packed documents are separate sequences.
struct Batch {
  std::vector<SequenceRun> sequences;
  std::vector<ImageGrid> images;

  static Batch uniform(std::int64_t count, std::int64_t length) { return {{{length, count}}, {}}; }

  [[nodiscard]] WideInt count() const;
  [[nodiscard]] WideInt tokens() const;
};

}  // namespace flopmeter
