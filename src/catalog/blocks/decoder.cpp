// SPDX-License-Identifier: Apache-2.0
#include "decoder.h"

#include <algorithm>

namespace flopmeter {
namespace {

/// A dropout saves its mask for backward, so that recomputation includes the operations before it.
Value dropout(LayerBuilder& layer, Value x, double share) {
  return share > 0 ? layer.parameters(x, "dropout", 0) : x;
}

}  // namespace

bool is_type(const Config& config, std::string_view model_type, std::string_view class_name) {
  if (config.has("model_type")) return config.text_or({"model_type"}, "") == model_type;
  const auto classes = config.texts({"architectures"});
  return !classes.empty() && classes.front() == class_name;
}

void set_sizes(Decoder& decoder,
               std::int64_t hidden,
               std::int64_t heads,
               std::int64_t kv_heads,
               std::int64_t ffn) {
  decoder.frame.hidden = decoder.attention.hidden = decoder.mlp.hidden = hidden;
  decoder.attention.heads = heads;
  decoder.attention.kv_heads = kv_heads;
  decoder.attention.head_dim = hidden / heads;
  decoder.mlp.ffn = ffn;
}

Decoder read_decoder(const Config& config, const DecoderDefaults& defaults) {
  Decoder decoder;
  decoder.layers = config.size({"num_hidden_layers"});
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads = config.size({"num_attention_heads"});
  const bool own = defaults.kv_heads > 0 && !config.is_null("num_key_value_heads");
  const std::int64_t kv = config.size_or({"num_key_value_heads"}, own ? defaults.kv_heads : heads);
  set_sizes(decoder, hidden, heads, kv, config.size({"intermediate_size"}));
  const std::int64_t dim = defaults.head_dim > 0 ? defaults.head_dim : hidden / heads;
  decoder.attention.head_dim = config.size_or({"head_dim"}, dim);
  decoder.frame.vocab = config.size({"vocab_size"});
  decoder.frame.tied = config.flag_or({"tie_word_embeddings"}, defaults.tied);
  return decoder;
}

std::vector<int> read_windowed(const Config& config,
                               std::int64_t layers,
                               bool (*otherwise)(std::int64_t layer, std::int64_t argument),
                               std::int64_t argument) {
  std::vector<int> windowed;
  if (layers > most_layers) return windowed;  // refused by check_sizes
  for (const std::string& type : config.texts({"layer_types"})) {
    if (type != "sliding_attention" && type != "full_attention")
      config.fail("key 'layer_types' has a type other than sliding_attention and full_attention");
    windowed.push_back(type == "sliding_attention" ? 1 : 0);
  }
  if (!windowed.empty()) {
    if (static_cast<std::int64_t>(windowed.size()) != layers)
      config.fail("key 'layer_types' must have one type per layer (num_hidden_layers)");
    return windowed;
  }
  for (std::int64_t layer = 0; layer < layers; ++layer)
    windowed.push_back(otherwise(layer, argument) ? 1 : 0);
  return windowed;
}

bool check_sizes(const Config& config, const Decoder& decoder) {
  const AttentionBlock& attention = decoder.attention;
  if (decoder.layers > most_layers) {
    config.fail("more than 65536 layers");
  } else if (attention.head_dim < 1) {
    config.fail("the hidden size is smaller than the number of attention heads");
  } else if (WideInt{attention.heads} * attention.head_dim > WideInt{1} << 40U) {
    config.fail("attention heads times head dimension exceeds 2^40");
  } else if (attention.heads % attention.kv_heads != 0) {
    config.fail("the number of attention heads is not a multiple of the key-value heads");
  }
  return static_cast<bool>(config.status());
}

void describe_layer(LayerBuilder& layer, const Decoder& decoder, bool windowed) {
  AttentionBlock attention = decoder.attention;
  if (windowed) attention.mask = {.shape = decoder.local, .size = decoder.window};
  const LayerNorms& norms = decoder.norms;
  const auto normed = [&](Value x, std::string_view name) {
    if (name.empty()) return x;
    return norm(layer, x, name, decoder.frame.hidden, decoder.frame.norm_bias);
  };
  const Value x = LayerBuilder::input();
  const Value first = normed(x, norms.before_attention);
  const Value attended =
      layer.sum(x, normed(attention_block(layer, first, attention), norms.after_attention));
  const bool shared = decoder.parallel && norms.before_mlp.empty();
  const Value second = shared ? first : normed(decoder.parallel ? x : attended, norms.before_mlp);
  const Value widened = normed(mlp_block(layer, second, decoder.mlp), norms.after_mlp);
  layer.output(layer.sum(attended, dropout(layer, widened, decoder.dropout)));
}

void add_layers(ModelBuilder& builder, const Decoder& decoder) {
  ModelFacts& facts = builder.model.facts;
  if (decoder.window == 0 || decoder.windowed.empty()) {
    const bool windowed = decoder.window > 0;
    builder.layers(decoder.layer_prefix, decoder.layers, [&](LayerBuilder& layer) {
      describe_layer(layer, decoder, windowed);
    });
    facts.window_layers = windowed ? decoder.layers : 0;
  } else {
    builder.layers(decoder.layer_prefix, decoder.windowed, [&](LayerBuilder& layer, int kind) {
      describe_layer(layer, decoder, kind == 1);
    });
    facts.window_layers = std::count(decoder.windowed.begin(), decoder.windowed.end(), 1);
  }
  facts.window = facts.window_layers > 0 ? decoder.window : 0;
  set_facts(builder.model,
            decoder.attention,
            decoder.layers,
            decoder.mlp.ffn,
            decoder.mlp.gated,
            decoder.frame.vocab,
            decoder.frame.tied);
}

Model build_decoder(const Config& config, const Decoder& decoder) {
  if (!check_sizes(config, decoder)) return {};
  ModelBuilder builder;
  open_decoder(builder, decoder.frame);
  add_layers(builder, decoder);
  close_decoder(builder, decoder.frame);
  return std::move(builder.model);
}

}  // namespace flopmeter
