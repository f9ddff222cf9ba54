// SPDX-License-Identifier: Apache-2.0
//
// OPT: learned positions (two rows more than specified), LayerNorm before or after, and for the
// 350M a narrower embedding with projections around the layers.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

struct Layout {
  Decoder decoder;
  std::int64_t width = 0;  ///< of the embedding
  bool norm_first = true;
  bool final_norm = true;
};

Layout read(const Config& config) {
  Layout layout;
  Decoder& decoder = layout.decoder;
  decoder.layers = config.size({"num_hidden_layers"});
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads = config.size({"num_attention_heads"});
  set_sizes(decoder, hidden, heads, heads, config.size({"ffn_dim"}));
  decoder.frame.vocab = config.size({"vocab_size"});
  decoder.frame.tied = config.flag_or({"tie_word_embeddings"}, true);
  const bool bias = config.flag_or({"enable_bias"}, true);
  decoder.attention.qkv_bias = decoder.attention.out_bias = decoder.mlp.bias = bias;
  decoder.attention.names.o = "self_attn.out_proj";
  decoder.mlp.gated = false;
  decoder.mlp.up = "fc1";
  decoder.mlp.down = "fc2";
  layout.width = config.size_or({"word_embed_proj_dim"}, hidden);
  layout.norm_first = config.flag_or({"do_layer_norm_before"}, true);
  layout.final_norm = layout.norm_first && !config.flag_or({"_remove_final_layer_norm"}, false);
  return layout;
}

/// Between the embedding's width and the layers', without bias.
Value project(
    LayerBuilder& layer, Value x, std::string_view name, std::int64_t in, std::int64_t out) {
  if (in == out) return x;
  return layer.linear(
      x, {.name = name, .in = in, .out = out, .component = Component::embedding_projections});
}

Model build(const Config& config) {
  const Layout layout = read(config);
  const Decoder& decoder = layout.decoder;
  if (!check_sizes(config, decoder)) return {};
  const std::int64_t hidden = decoder.frame.hidden;
  const bool affine = config.flag_or({"layer_norm_elementwise_affine"}, true);
  const std::int64_t positions = config.size_or({"max_position_embeddings"}, 2048) + 2;
  const double dropout = config.number_or({"dropout"}, 0.1);
  const auto normed = [&](LayerBuilder& layer, Value x, std::string_view name) {
    return norm(layer, x, name, affine ? hidden : 0, /*bias=*/true);
  };
  ModelBuilder builder;
  builder.once("model.decoder.", [&](LayerBuilder& layer) {
    const Value words = layer.embedding("embed_tokens", decoder.frame.vocab, layout.width);
    const Value x = project(layer, words, "project_in", layout.width, hidden);
    layer.output(layer.sum(x, layer.embedding("embed_positions", positions, hidden)));
  });
  builder.layers("model.decoder.layers.", decoder.layers, [&](LayerBuilder& layer) {
    const auto part = [&](Value x, std::string_view name, const auto& block) {
      if (layout.norm_first) return layer.sum(x, block(normed(layer, x, name)));
      return normed(layer, layer.sum(x, block(x)), name);
    };
    const Value x = part(LayerBuilder::input(), "self_attn_layer_norm", [&](Value y) {
      return attention_block(layer, y, decoder.attention);
    });
    layer.output(part(x, "final_layer_norm", [&](Value y) {
      y = mlp_block(layer, y, decoder.mlp);
      return dropout > 0 ? layer.parameters(y, "dropout", 0) : y;
    }));
  });
  builder.once("model.decoder.", [&](LayerBuilder& layer) {
    Value x = LayerBuilder::input();
    if (layout.final_norm) x = normed(layer, x, "final_layer_norm");
    layer.output(project(layer, x, "project_out", hidden, layout.width));
  });
  builder.once("", [&](LayerBuilder& layer) {
    layer.output(layer.linear(LayerBuilder::input(),
                              {.name = "lm_head",
                               .in = layout.width,
                               .out = decoder.frame.vocab,
                               .component = Component::lm_head,
                               .tied = decoder.frame.tied}));
  });
  set_facts(builder.model,
            decoder.attention,
            decoder.layers,
            decoder.mlp.ffn,
            /*gated=*/false,
            decoder.frame.vocab,
            decoder.frame.tied);
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_opt{
    .name = "opt",
    .help = "OPT: learned positions, LayerNorm, biases, plain MLP",
    .types = "opt OPTForCausalLM",
    .build = build,
    .random_config = {.grouped = false, .gated = false},
    // One layer, h = 8, n = 2, d = 4, f = 16, V = 32, embedding of width 4, 16
    // positions, s = 4. Parameters: embedding, tied to the head, 128; positions 18*8;
    // project_in, project_out 32 each; q, k, v, out 64 + 8 each; fc1 128 + 16; fc2 128 +
    // 8; norms 3*16. Per token, forward: 2*(64 + 256 + 256 + 128) = 1408; attention: 10
    // pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1408 + 320).
    .example = {.config = R"({"model_type": "opt", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "ffn_dim": 16, "word_embed_proj_dim": 4,
                             "max_position_embeddings": 16, "vocab_size": 32})",
                .parameters = 952,
                .seq_len = 4,
                .training_flops = 17856}};

}  // namespace flopmeter
