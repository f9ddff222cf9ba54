// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/flop_estimator.h>

#include <algorithm>

namespace flopmeter {

FlopEstimate share_of(const FlopEstimate& batch, int world_size, int data_parallel, int rank) {
  const auto ranks =
      static_cast<std::uint64_t>(std::max(1, world_size / std::max(1, data_parallel)));
  const std::uint64_t place = static_cast<std::uint64_t>(std::max(0, rank)) % ranks;
  const auto part = [=](std::uint64_t whole) {
    return whole / ranks + (place < whole % ranks ? 1 : 0);
  };
  FlopEstimate share;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    share.model[i] = part(batch.model[i]);
    share.hardware[i] = part(batch.hardware[i]);
  }
  share.recompute = part(batch.recompute);
  share.lm_head = part(batch.lm_head);
  return share;
}

}  // namespace flopmeter
