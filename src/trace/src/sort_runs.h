// SPDX-License-Identifier: Apache-2.0
//
// Sorts a list that consists of a few sorted parts, as the events of a trace do: Kineto writes the
// operators of a thread in order, then its launches in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace flopmeter {

/// Sorts like std::stable_sort; takes one pass if the list is sorted, and merges only where parts
/// overlap.
template <class Iterator, class Less>
void sort_runs(Iterator begin, Iterator end, const Less& less) {
  std::vector<Iterator> starts;  // of the sorted parts, and the end
  constexpr std::size_t most_runs = 4096;
  for (Iterator at = begin; at != end; at = std::is_sorted_until(at, end, less)) {
    if (starts.size() == most_runs) return std::stable_sort(begin, end, less);
    starts.push_back(at);
  }
  starts.push_back(end);
  for (std::size_t width = 1; width + 1 < starts.size(); width *= 2) {
    for (std::size_t i = 0; i + width + 1 < starts.size(); i += 2 * width) {
      const Iterator middle = starts[i + width];
      const Iterator last = starts[std::min(i + 2 * width, starts.size() - 1)];
      const Iterator from = std::upper_bound(starts[i], middle, *middle, less);
      if (from != middle)
        std::inplace_merge(from, middle, std::lower_bound(middle, last, middle[-1], less), less);
    }
  }
}

}  // namespace flopmeter
