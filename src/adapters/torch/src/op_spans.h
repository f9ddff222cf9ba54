// SPDX-License-Identifier: Apache-2.0
//
// OpSpans: operators on the time axis of a profile, in bounded memory.
#pragma once

#include "op_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flopmeter::torch_adapter {

struct OpSpan {
  const RowKey* row = nullptr;  ///< null: no operator ran
  std::int64_t begin_ns = 0;    ///< of the steady clock
  std::int64_t length_ns = 0;
  std::int32_t lane = 0;  ///< thread
  std::uint8_t phase = 0;
};

/// Keeps the longest.  add() does not allocate.  Not thread-safe.
class OpSpans {
 public:
  static constexpr std::size_t most = 2000;

  OpSpans() { spans_.reserve(2 * most); }

  void add(const OpSpan& span) {
    if (span.length_ns < shortest_ns_) {
      ++omitted_;
      return;
    }
    spans_.push_back(span);
    if (spans_.size() == 2 * most) trim();
  }
  /// Adds those of a thread.
  void add(const OpSpans& others, std::int32_t lane) {
    for (OpSpan span : others.spans_) {
      span.lane = lane;
      add(span);
    }
    omitted_ += others.omitted_;
  }
  /// At most `most`, in the order of time.
  [[nodiscard]] const std::vector<OpSpan>& finish() {
    if (spans_.size() > most) trim();
    std::sort(spans_.begin(), spans_.end(), [](const OpSpan& a, const OpSpan& b) {
      return a.begin_ns < b.begin_ns;
    });
    return spans_;
  }
  [[nodiscard]] std::int64_t omitted() const { return omitted_; }

 private:
  void trim() {
    const auto last = spans_.begin() + most - 1;
    std::nth_element(spans_.begin(), last, spans_.end(), [](const OpSpan& a, const OpSpan& b) {
      return a.length_ns > b.length_ns;
    });
    shortest_ns_ = last->length_ns;
    omitted_ += static_cast<std::int64_t>(spans_.size() - most);
    spans_.resize(most);
  }

  std::vector<OpSpan> spans_;
  std::int64_t shortest_ns_ = 0;
  std::int64_t omitted_ = 0;
};

}  // namespace flopmeter::torch_adapter
