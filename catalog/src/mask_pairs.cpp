// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/operations.h>

#include <algorithm>

namespace flopmeter {

WideInt mask_pairs(MaskPairs mask, std::int64_t queries, std::int64_t keys) {
  const WideInt q = queries;
  const WideInt size = std::min(mask.size, queries);
  switch (mask.shape) {
    case MaskPairs::Shape::window:
      return size * (size + 1) / 2 + (q - size) * size;
    case MaskPairs::Shape::full:
      return q * keys;
    default:
      return q * (q + 1) / 2;
  }
}

}  // namespace flopmeter
