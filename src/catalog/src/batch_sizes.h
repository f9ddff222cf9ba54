// SPDX-License-Identifier: Apache-2.0
//
// BatchSizes: the rows of each kind and the attention pairs of a batch, for a model.  Private to
// the catalog.
#pragma once

#include <flopmeter/catalog/cost_model.h>

namespace flopmeter {

class BatchSizes {
 public:
  BatchSizes(const Model& model, const Batch& batch);

  [[nodiscard]] WideInt rows(Rows kind) const { return rows_[static_cast<std::size_t>(kind)]; }

  /// Twice the (query, key) pairs of one layer.
  [[nodiscard]] WideInt twice_pairs(const AttentionSpec& spec,
                                    const Batch& batch,
                                    const Policy& policy,
                                    AttentionKernel kernel) const;

 private:
  std::array<WideInt, 5> rows_{};
  WideInt frame_pairs_ = 0;
  WideInt window_pairs_ = 0;
  WideInt image_pairs_ = 0;
  WideInt packed_pairs_ = 0;
};

/// Whether the trained parameters of a layer can depend on its number: a pattern without digits,
/// `?`, and `[` matches all numbers or none.
bool names_layers(const Trainable& trainable);

/// Parameters of a node that get gradients.
struct Trained {
  bool weight = true;
  bool bias = true;

  bool operator==(const Trained&) const = default;
};

/// Parameter of tied heads: "model.embed_tokens.weight".
std::string embedding_name(const Model& model);

/// `embedding` is embedding_name() of the model.
Trained trained(const Trainable& trainable,
                const LayerRun& run,
                const Node& node,
                std::int64_t number,
                std::string_view embedding);
bool is_adapted(const Trainable& trainable,
                const LayerRun& run,
                const Node& node,
                std::int64_t number);

/// Elements of one weight of a node, without the bias; 0 if tied.
WideInt weight_count(const Node& node);
WideInt bias_count(const Node& node);

}  // namespace flopmeter
