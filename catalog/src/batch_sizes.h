// SPDX-License-Identifier: Apache-2.0
//
// BatchSizes: what a batch means for a model: rows of each kind, and attention's pairs.  Private to
// the catalog.
#pragma once

#include <flopmeter/catalog/pricing.h>

namespace flopmeter {

class BatchSizes {
 public:
  BatchSizes(const Model& model, const Batch& batch);

  [[nodiscard]] WideInt rows(Rows kind) const { return rows_[static_cast<std::size_t>(kind)]; }

  /// Twice the (query, key) pairs of one layer.
  [[nodiscard]] WideInt twice_pairs(const AttentionSpec& spec,
                                    const Batch& batch,
                                    Policy::Pairs policy,
                                    AttentionKernel kernel) const;

 private:
  std::array<WideInt, 3> rows_{};
  WideInt frame_pairs_ = 0;
  WideInt window_pairs_ = 0;
  WideInt image_pairs_ = 0;
};

bool is_trainable(const Trainable& trainable,
                  const LayerRun& run,
                  const Node& node,
                  std::int64_t number);
bool is_adapted(const Trainable& trainable,
                const LayerRun& run,
                const Node& node,
                std::int64_t number);

}  // namespace flopmeter
