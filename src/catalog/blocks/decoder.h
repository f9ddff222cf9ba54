// SPDX-License-Identifier: Apache-2.0
//
// Decoder: the properties in which dense decoders differ, set by a family file.  Private to the
// catalog.
#pragma once

#include "blocks.h"

#include <vector>

namespace flopmeter {

/// Maximum number of layers.
inline constexpr std::int64_t most_layers = 1 << 16;

/// Names of the norms of a layer; empty: none.
struct LayerNorms {
  std::string_view before_attention = "input_layernorm";
  std::string_view after_attention;  ///< of the attention result, before the residual addition
  std::string_view before_mlp = "post_attention_layernorm";
  std::string_view after_mlp;
};

/// A decoder whose layers differ only in the attention window.
struct Decoder {
  std::int64_t layers = 0;
  std::string_view layer_prefix = "model.layers.";
  DecoderFrame frame{};
  AttentionBlock attention{};
  MlpBlock mlp{};
  LayerNorms norms{};
  bool parallel = false;    ///< attention and MLP both read the layer's input; without a
                            ///< separate name, the MLP uses attention's norm
  std::int64_t window = 0;  ///< number of keys in a windowed layer
  MaskPairs::Shape local = MaskPairs::Shape::window;  ///< of a windowed layer: window or chunk
  std::vector<int> windowed;  ///< by layer: 1 windowed, 0 not; empty: all if there is a window
  double dropout = 0;         ///< at the end of the layer
};

/// Defaults of missing keys; 0: derived as usual.
struct DecoderDefaults {
  std::int64_t kv_heads = 0;  ///< 0: the number of heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  bool tied = false;
};

/// Whether a configuration has one of the types of its family, by `model_type`, else by class.
bool is_type(const Config& config, std::string_view model_type, std::string_view class_name);

/// Reads the sizes by LLaMA's names, which most families use.
Decoder read_decoder(const Config& config, const DecoderDefaults& defaults = {});

/// Sets hidden, heads, and so on in all parts.
void set_sizes(Decoder& decoder,
               std::int64_t hidden,
               std::int64_t heads,
               std::int64_t kv_heads,
               std::int64_t ffn);

/// `layer_types` of a configuration, else `otherwise(layer)`, for Decoder::windowed.
std::vector<int> read_windowed(const Config& config,
                               std::int64_t layers,
                               bool (*otherwise)(std::int64_t layer, std::int64_t argument),
                               std::int64_t argument);

/// Contradicting sizes become an error of the configuration.
Model build_decoder(const Config& config, const Decoder& decoder);

/// Layers, and the sizes for the conventions.
void add_layers(ModelBuilder& builder, const Decoder& decoder);

/// Operations of one layer, which `build_decoder` repeats.
void describe_layer(LayerBuilder& layer, const Decoder& decoder, bool windowed);

/// Whether the sizes are consistent; keeps the error.
bool check_sizes(const Config& config, const Decoder& decoder);

}  // namespace flopmeter
