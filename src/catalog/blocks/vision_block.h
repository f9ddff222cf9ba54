// SPDX-License-Identifier: Apache-2.0
//
// Layers of vision towers, for the family files.  Private to the catalog.
#pragma once

#include "blocks.h"

namespace flopmeter {

/// One layer of a vision transformer: norm, attention without a mask, norm, MLP, biases throughout
/// unless said otherwise.
struct VisionLayer {
  std::int64_t width = 0;
  std::int64_t heads = 1;
  std::int64_t ffn = 0;
  bool gated = false;
  bool qkv_bias = true;
  bool bias = true;         ///< of attention's result and of the MLP
  std::string_view q_norm;  ///< names, where queries and keys are normalised over all heads
  std::string_view k_norm;
  std::string_view scale1;  ///< names, where a vector scales attention's and the MLP's result
  std::string_view scale2;
  bool norm_bias = true;  ///< LayerNorm; false for RMS norm
  std::string_view norm1 = "norm1";
  std::string_view norm2 = "norm2";
  ProjectionNames names{.q = "attn.qkv", .k = "", .v = "", .o = "attn.proj"};
  std::string_view gate = "mlp.gate_proj";
  std::string_view up = "mlp.up_proj";
  std::string_view down = "mlp.down_proj";
};

/// Sizes that contradict each other become the configuration's error.
void check_tower(const Config& vision, const VisionLayer& spec);

void vision_layer(LayerBuilder& layer, const VisionLayer& spec, AttentionSpec::Over over);

/// Of a tower's layers, those below the output that is read, and all.
struct TowerLayers {
  std::int64_t read = 0;
  std::int64_t all = 0;
};

/// The layers of a tower; those above the output that is read run forward only.
void add_vision_layers(ModelBuilder& builder,
                       std::string_view prefix,
                       const VisionLayer& spec,
                       AttentionSpec::Over over,
                       TowerLayers layers);

/// A linear with bias of the vision part.
Value vision_linear(LayerBuilder& layer,
                    Value x,
                    std::string_view name,
                    std::int64_t in,
                    std::int64_t out,
                    Rows rows,
                    bool bias = true);

/// The number of a tower's layers, which must be one a model can have.
std::int64_t read_tower_layers(const Config& vision, Config::Keys keys, std::int64_t otherwise);

/// How many of a tower's layers lie below the output that `vision_feature_layer` reads: output 0 is
/// the embedding, output i layer i's, and negative ones count from the end.
std::int64_t read_feature_layer(const Config& config, double otherwise, std::int64_t layers);

/// Qwen's towers: patches of several frames, and a merger of neighbouring patches behind the
/// layers.
struct GridTower {
  std::int64_t patch = 0;   ///< side in pixels
  std::int64_t kernel = 0;  ///< weights of a patch's kernel
  std::int64_t merge = 0;
  std::int64_t merged = 0;     ///< width of a merged patch
  std::int64_t out = 0;        ///< width of the language model
  bool bias = false;           ///< of the patches' kernel
  std::int64_t positions = 0;  ///< learned ones, 0 for none
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
