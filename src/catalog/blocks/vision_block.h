// SPDX-License-Identifier: Apache-2.0
//
// Layers of vision towers, for the family files.  Private to the catalog.
#pragma once

#include "blocks.h"

namespace flopmeter {

/// One layer of a vision transformer: norm, attention without a mask, norm, MLP, with biases by
/// default.
struct VisionLayer {
  std::int64_t width = 0;
  std::int64_t heads = 1;
  std::int64_t ffn = 0;
  bool gated = false;
  bool qkv_bias = true;
  bool bias = true;         ///< of the attention result and the MLP
  std::string_view q_norm;  ///< names of the norms of queries and keys, over all heads; empty: none
  std::string_view k_norm;
  std::string_view scale1;  ///< names of the scales of the attention and MLP results; empty: none
  std::string_view scale2;
  bool norm_bias = true;  ///< LayerNorm; false for RMS norm
  std::string_view norm1 = "norm1";
  std::string_view norm2 = "norm2";
  ProjectionNames names{.q = "attn.qkv", .k = "", .v = "", .o = "attn.proj"};
  std::string_view gate = "mlp.gate_proj";
  std::string_view up = "mlp.up_proj";
  std::string_view down = "mlp.down_proj";
};

/// Contradicting sizes become an error of the configuration.
void check_tower(const Config& vision, const VisionLayer& spec);

void vision_layer(LayerBuilder& layer, const VisionLayer& spec, AttentionSpec::Over over);

/// Layers of a tower up to the output that is read, and all layers.
struct TowerLayers {
  std::int64_t read = 0;
  std::int64_t all = 0;
};

/// Layers of a tower; those after the output that is read run forward only.
void add_vision_layers(ModelBuilder& builder,
                       std::string_view prefix,
                       const VisionLayer& spec,
                       AttentionSpec::Over over,
                       TowerLayers layers);

/// A linear layer with bias, in the vision component.
Value vision_linear(LayerBuilder& layer,
                    Value x,
                    std::string_view name,
                    std::int64_t in,
                    std::int64_t out,
                    Rows rows,
                    bool bias = true);

/// Number of layers of a tower, checked against the maximum.
std::int64_t read_tower_layers(const Config& vision, Config::Keys keys, std::int64_t otherwise);

/// Number of layers up to the output that `vision_feature_layer` selects: output 0 is the
/// embedding, output i that of layer i; negative values count from the end.
std::int64_t read_feature_layer(const Config& config, double otherwise, std::int64_t layers);

/// Qwen's towers: patches of several frames, and a merger of adjacent patches after the layers.
struct GridTower {
  std::int64_t patch = 0;   ///< side in pixels
  std::int64_t kernel = 0;  ///< weights per patch kernel
  std::int64_t merge = 0;
  std::int64_t merged = 0;     ///< width of a merged patch
  std::int64_t out = 0;        ///< width of the language model
  bool bias = false;           ///< of the patch kernel
  std::int64_t positions = 0;  ///< learned positions; 0: none
};

GridTower read_grid_tower(const Config& vision,
                          std::int64_t width,
                          std::int64_t default_patch = 14);
void open_grid_tower(ModelBuilder& builder, const GridTower& tower, std::int64_t width);
void close_grid_tower(ModelBuilder& builder,
                      const GridTower& tower,
                      std::int64_t width,
                      bool norm_bias);

}  // namespace flopmeter
