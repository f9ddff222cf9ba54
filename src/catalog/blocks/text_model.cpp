// SPDX-License-Identifier: Apache-2.0
#include "text_model.h"

#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

bool from_layer(std::int64_t layer, std::int64_t first) {
  return layer >= first;
}

void read_windows(const Config& text, const TextDefaults& defaults, Decoder& decoder) {
  using Window = TextDefaults::Window;
  const bool upper = defaults.window == Window::upper;
  if (defaults.window == Window::none || text.is_null("sliding_window")) return;
  if (upper && !text.flag_or({"use_sliding_window"}, false)) return;
  decoder.window = text.count_or({"sliding_window"}, 4096);
  const std::int64_t first =
      upper ? text.count_or({"max_window_layers"}, defaults.max_window_layers) : 0;
  decoder.windowed = read_windowed(text, decoder.layers, from_layer, first);
}

}  // namespace

TextDefaults text_defaults(const Config& text, std::string_view otherwise) {
  using Window = TextDefaults::Window;
  const std::string type = text.text_or({"model_type"}, otherwise);
  const TextDefaults llama{.vocab = 32000, .hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32};
  if (type == "mistral") {
    return {.vocab = 32000,
            .hidden = 4096,
            .ffn = 14336,
            .layers = 32,
            .heads = 32,
            .kv_heads = 8,
            .window = Window::all};
  }
  if (type == "qwen2" || type == "qwen3") {
    const bool third = type == "qwen3";
    return {.vocab = 151936,
            .hidden = 4096,
            .ffn = 22016,
            .layers = 32,
            .heads = 32,
            .kv_heads = 32,
            .head_dim = third ? 128 : 0,
            .qk_norm = third,
            .qkv_bias = !third,
            .window = Window::upper,
            .max_window_layers = 28};
  }
  if (type != "llama" && type != "vicuna" && type != "llava") {
    text.fail("text model '" + printable(type) +
              "' is not supported in a multimodal model; supported: llama, mistral, qwen2, qwen3");
  }
  return llama;
}

bool is_tied(const Config& config) {
  const bool older = config.text_or({"transformers_version"}, "").starts_with("4.");
  const bool otherwise =
      !older || config.child("text_config").flag_or({"tie_word_embeddings"}, false);
  return config.flag_or({"tie_word_embeddings"}, otherwise);
}

Decoder read_text_model(const Config& text, const TextDefaults& defaults, bool tied) {
  Decoder decoder;
  decoder.layers = text.size_or({"num_hidden_layers"}, defaults.layers);
  const std::int64_t hidden = text.size_or({"hidden_size"}, defaults.hidden);
  const std::int64_t heads = text.size_or({"num_attention_heads"}, defaults.heads);
  const bool own = defaults.kv_heads > 0 && !text.is_null("num_key_value_heads");
  set_sizes(decoder,
            hidden,
            heads,
            text.size_or({"num_key_value_heads"}, own ? defaults.kv_heads : heads),
            text.size_or({"intermediate_size"}, defaults.ffn));
  decoder.attention.head_dim =
      text.size_or({"head_dim"}, defaults.head_dim > 0 ? defaults.head_dim : hidden / heads);
  if (defaults.qk_norm) {
    decoder.attention.q_norm = "self_attn.q_norm";
    decoder.attention.k_norm = "self_attn.k_norm";
  }
  const bool bias = text.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = bias || defaults.qkv_bias;
  decoder.attention.out_bias = bias;
  decoder.mlp.bias = text.flag_or({"mlp_bias"}, false);
  decoder.layer_prefix = "model.language_model.layers.";
  decoder.frame.prefix = "model.language_model.";
  decoder.frame.vocab = text.size_or({"vocab_size"}, defaults.vocab);
  decoder.frame.tied = tied || text.flag_or({"tie_word_embeddings"}, false);
  if (check_sizes(text, decoder)) read_windows(text, defaults, decoder);
  return decoder;
}

Decoder read_qwen_text(const Config& config) {
  const TextDefaults defaults{.vocab = 152064,
                              .hidden = 8192,
                              .ffn = 29568,
                              .layers = 80,
                              .heads = 64,
                              .kv_heads = 8,
                              .qkv_bias = true,
                              .window = TextDefaults::Window::upper,
                              .max_window_layers = 80};
  return read_text_model(config.has("text_config") ? config.child("text_config") : config,
                         defaults,
                         config.flag_or({"tie_word_embeddings"}, false));
}

void add_text_model(ModelBuilder& builder, const Decoder& text) {
  add_text_model(builder, SparseDecoder{.base = text, .moe = {}, .sparse = {}});
}

void add_text_model(ModelBuilder& builder, const SparseDecoder& text) {
  open_decoder(builder, text.base.frame);
  const std::size_t first = builder.model.runs.size();
  if (text.sparse.empty()) {
    add_layers(builder, text.base);
  } else {
    add_sparse_layers(builder, text);
  }
  builder.model.runs[first].joins_vision = true;
  close_decoder(builder, text.base.frame);
  builder.model.facts.multimodal = true;
}

}  // namespace flopmeter
