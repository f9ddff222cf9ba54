// SPDX-License-Identifier: Apache-2.0
//
// Decoder: what dense decoders differ in, as one table a family file fills.  Private to the
// catalog.
#pragma once

#include "blocks.h"

#include <vector>

namespace flopmeter {

/// More layers than any model has.
inline constexpr std::int64_t most_layers = 1 << 16;

/// Names of a layer's norms; an empty one is not there.
struct LayerNorms {
  std::string_view before_attention = "input_layernorm";
  std::string_view after_attention;  ///< on attention's result, before it joins the stream
  std::string_view before_mlp = "post_attention_layernorm";
  std::string_view after_mlp;
};

/// A decoder whose layers are alike but for attention's window.
struct Decoder {
  std::int64_t layers = 0;
  std::string_view layer_prefix = "model.layers.";
  DecoderFrame frame{};
  AttentionBlock attention{};
  MlpBlock mlp{};
  LayerNorms norms{};
  bool parallel = false;  ///< attention and MLP both read the layer's input; without a name of its
                          ///< own, the MLP shares attention's norm
  std::int64_t window = 0;                            ///< keys that a windowed layer sees
  MaskPairs::Shape local = MaskPairs::Shape::window;  ///< of a windowed layer: window or chunk
  std::vector<int> windowed;  ///< by layer: 1 windowed, 0 not; empty: all if there is a window
  double dropout = 0;         ///< at the end of the layer
};

/// What is taken for keys that a configuration leaves out; 0 stands for the usual derivation.
struct DecoderDefaults {
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  bool tied = false;
};

/// Whether a configuration is of one type among those of its family: by `model_type`, else by
/// class.
bool is_type(const Config& config, std::string_view model_type, std::string_view class_name);

/// Sizes under the names that LLaMA gave them and most families use.
Decoder read_decoder(const Config& config, const DecoderDefaults& defaults = {});

/// Sets hidden, heads and so on in all parts that need them.
void set_sizes(Decoder& decoder,
               std::int64_t hidden,
               std::int64_t heads,
               std::int64_t kv_heads,
               std::int64_t ffn);

/// `layer_types` of a configuration, else `otherwise(layer)`, as Decoder::windowed wants it.
std::vector<int> read_windowed(const Config& config,
                               std::int64_t layers,
                               bool (*otherwise)(std::int64_t layer, std::int64_t argument),
                               std::int64_t argument);

/// Sizes that contradict each other become the configuration's error.
Model build_decoder(const Config& config, const Decoder& decoder);

/// The layers, and the sizes that conventions ask for.
void add_layers(ModelBuilder& builder, const Decoder& decoder);

/// One layer's operations: what `build_decoder` repeats.
void describe_layer(LayerBuilder& layer, const Decoder& decoder, bool windowed);

/// Whether the layers' sizes make sense together; keeps the error.
bool check_sizes(const Config& config, const Decoder& decoder);

}  // namespace flopmeter
