// SPDX-License-Identifier: Apache-2.0
#include "text_model.h"

#include "moe_block.h"

#include <flopmeter/core/text.h>

#include <algorithm>

namespace flopmeter {
namespace {

std::vector<std::int64_t> read_windows(const Config& text,
                                       const TextDefaults& defaults,
                                       std::size_t layers) {
  using Window = TextDefaults::Window;
  std::vector<std::int64_t> list(layers, 0);
  const bool upper = defaults.window == Window::upper;
  if (defaults.window == Window::none || text.is_null("sliding_window")) return list;
  if (upper && !text.flag_or({"use_sliding_window"}, false)) return list;
  const std::int64_t window = text.count_or({"sliding_window"}, 4096);
  if (text.has("layer_types")) return typed_windows(text, layers, window);
  const std::int64_t from =
      upper ? text.count_or({"max_window_layers"}, defaults.max_window_layers) : 0;
  for (auto i = static_cast<std::size_t>(from); i < layers; ++i) list[i] = window;
  return list;
}

}  // namespace

TextDefaults text_defaults(const Config& text) {
  using Window = TextDefaults::Window;
  const std::string type = text.text_or({"model_type"}, "llama");
  const TextDefaults llama{
      .vocab = 32000, .hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32};
  if (type == "mistral") {
    return {.vocab = 32000,
            .hidden = 4096,
            .ffn = 14336,
            .layers = 32,
            .heads = 32,
            .kv_heads = 8,
            .window = Window::all};
  }
  if (type == "qwen2") {
    return {.vocab = 151936,
            .hidden = 4096,
            .ffn = 22016,
            .layers = 32,
            .heads = 32,
            .kv_heads = 32,
            .qkv_bias = true,
            .window = Window::upper,
            .max_window_layers = 28};
  }
  if (type != "llama" && type != "vicuna" && type != "llava") {
    text.fail("text model '" + printable(type) +
              "' is not known inside a multimodal model; known are llama, mistral and qwen2");
  }
  return llama;
}

TextModel read_text_model(const Config& text, const TextDefaults& defaults, bool tied) {
  TextModel model;
  const std::int64_t hidden = text.size_or({"hidden_size"}, defaults.hidden);
  const std::int64_t heads = text.size_or({"num_attention_heads"}, defaults.heads);
  const std::int64_t layers = text.size_or({"num_hidden_layers"}, defaults.layers);
  const bool bias = text.flag_or({"attention_bias"}, false);
  const bool kv_default = !text.is_null("num_key_value_heads") && defaults.kv_heads > 0;
  model.attention = {
      .hidden = hidden,
      .heads = heads,
      .kv_heads = text.size_or({"num_key_value_heads"}, kv_default ? defaults.kv_heads : heads),
      .head_dim = text.size_or({"head_dim"}, std::max<std::int64_t>(hidden / heads, 1)),
      .qkv_bias = bias || defaults.qkv_bias,
      .out_bias = bias};
  model.mlp = {.hidden = hidden,
               .ffn = text.size_or({"intermediate_size"}, defaults.ffn),
               .bias = text.flag_or({"mlp_bias"}, false)};
  model.frame = {.prefix = "model.language_model.",
                 .hidden = hidden,
                 .vocab = text.size_or({"vocab_size"}, defaults.vocab),
                 .tied = tied || text.flag_or({"tie_word_embeddings"}, false)};
  if (layers > max_layers) {
    text.fail("the text model has " + std::to_string(layers) + " layers, expected at most " +
              std::to_string(max_layers));
  } else {
    model.window = read_windows(text, defaults, static_cast<std::size_t>(layers));
  }
  return model;
}

TextModel read_qwen_text(const Config& config) {
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

void add_text_model(ModelBuilder& builder, const TextModel& text) {
  open_decoder(builder, text.frame);
  const std::int64_t hidden = text.frame.hidden;
  const std::size_t first = builder.model.runs.size();
  std::vector<int> kinds;
  for (const std::int64_t window : text.window) kinds.push_back(window > 0 ? 1 : 0);
  builder.layers("model.language_model.layers.", kinds, [&](LayerBuilder& layer, int kind) {
    AttentionBlock attention = text.attention;
    if (kind == 1) {
      attention.mask = {.shape = MaskPairs::Shape::window,
                        .size = *std::max_element(text.window.begin(), text.window.end())};
    }
    Value x = LayerBuilder::input();
    x = layer.sum(x, attention_block(layer, norm(layer, x, "input_layernorm", hidden), attention));
    x = layer.sum(x, mlp_block(layer, norm(layer, x, "post_attention_layernorm", hidden), text.mlp));
    layer.output(x);
  });
  if (builder.model.runs.size() > first) builder.model.runs[first].joins_vision = true;
  close_decoder(builder, text.frame);
  set_facts(builder.model,
            text.attention,
            static_cast<std::int64_t>(text.window.size()),
            text.mlp.ffn,
            /*gated=*/true,
            text.frame.vocab,
            text.frame.tied);
  ModelFacts& facts = builder.model.facts;
  facts.multimodal = true;
  facts.window_layers = std::count(kinds.begin(), kinds.end(), 1);
  if (facts.window_layers > 0)
    facts.window = *std::max_element(text.window.begin(), text.window.end());
}

}  // namespace flopmeter
