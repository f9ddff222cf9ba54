// SPDX-License-Identifier: Apache-2.0
//
// Number of pairs that a mask keeps, in closed form.  Every shape consists of ramps: query i uses
// the first i + start keys, clamped to 0 and all keys.
#include <flopmeter/catalog/operations.h>

#include <algorithm>

namespace flopmeter {
namespace {

constexpr WideInt triangle(WideInt n) {
  return n * (n + 1) / 2;
}

/// Sum of clamp(i + start, 0, keys) over 0 <= i < queries.
WideInt ramp(WideInt queries, WideInt start, WideInt keys) {
  const auto sum_to = [keys](WideInt n) {  // of clamp(i, 0, keys) over 0 <= i < n
    if (n <= 0) return WideInt{0};
    return n <= keys ? triangle(n - 1) : triangle(keys - 1) + (n - keys) * keys;
  };
  return sum_to(start + queries) - sum_to(start);
}

/// Pairs of the first `positions` queries of causal chunks.
WideInt chunks(WideInt positions, WideInt size) {
  return positions / size * triangle(size) + triangle(positions % size);
}

}  // namespace

WideInt band_pairs(std::int64_t queries,
                   std::int64_t keys,
                   std::int64_t diagonal,
                   std::int64_t width) {
  if (queries <= 0 || keys <= 0 || width <= 0) return 0;
  const WideInt end = WideInt{diagonal} + 1;
  return ramp(queries, end, keys) - ramp(queries, end - width, keys);
}

WideInt mask_pairs(MaskPairs mask, std::int64_t queries, std::int64_t keys) {
  using Shape = MaskPairs::Shape;
  if (queries <= 0 || keys <= 0) return 0;
  const std::int64_t before = keys - queries;  // keys older than the first query
  switch (mask.shape) {
    case Shape::full:
      return WideInt{queries} * keys;
    case Shape::causal:
      return ramp(queries, 1, keys);
    case Shape::causal_bottom_right:
      return ramp(queries, WideInt{before} + 1, keys);
    case Shape::window:
      return band_pairs(queries, keys, before, mask.size);
    case Shape::chunk:
      if (mask.size <= 0) return 0;
      return chunks(keys, mask.size) - chunks(std::max<std::int64_t>(before, 0), mask.size);
    case Shape::prefix: {
      const std::int64_t shared = std::clamp<std::int64_t>(mask.size, 0, keys);
      return WideInt{queries} * shared + ramp(queries, WideInt{before} + 1 - shared, keys - shared);
    }
  }
  return 0;
}

WideInt mask_pairs(MaskPairs mask, std::span<const std::int64_t> lengths) {
  WideInt pairs = 0;
  for (const std::int64_t length : lengths) pairs += mask_pairs(mask, length, length);
  return pairs;
}

}  // namespace flopmeter
