// SPDX-License-Identifier: Apache-2.0
//
// LFM2: gated short convolutions, with attention in some layers; a gated MLP or experts follow.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// Bits of a kind: the first is set if it has attention, the second if it has experts.
enum Bit : int { attention = 1, sparse = 2 };

struct Hybrid {
  SparseDecoder decoder;
  std::int64_t kernel = 0;
  bool conv_bias = false;
  std::vector<int> kinds;
};

/// LFM2 cuts the width to two thirds, scales it, and rounds it up.
std::int64_t read_ffn(const Config& config) {
  std::int64_t ffn = config.size_or({"block_ff_dim", "intermediate_size"}, 12288);
  if (!config.flag_or({"block_auto_adjust_ff_dim"}, true)) return ffn;
  const double scale = config.number_or({"block_ffn_dim_multiplier"}, 1);
  const std::int64_t multiple = config.size_or({"block_multiple_of"}, 256);
  ffn = 2 * ffn / 3;
  if (config.is_null("block_ffn_dim_multiplier")) return ffn;
  if (!(scale > 0) || scale > 1024) {
    config.fail("key 'block_ffn_dim_multiplier' is not between 0 and 1024");
    return ffn;
  }
  ffn = static_cast<std::int64_t>(scale * static_cast<double>(ffn));
  return (ffn + multiple - 1) / multiple * multiple;
}

std::vector<int> read_kinds(const Config& config, std::int64_t layers) {
  const auto types = config.texts({"layer_types"});
  const auto indices = config.counts({"full_attn_idxs"});
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers)
    config.fail("key 'layer_types' must have one type per layer (num_hidden_layers)");
  std::vector<int> kinds;
  for (const std::string& type : types) kinds.push_back(type == "full_attention" ? attention : 0);
  const bool every = types.empty() && !config.has("full_attn_idxs");
  kinds.resize(static_cast<std::size_t>(layers), every ? attention : 0);
  if (!types.empty()) return kinds;
  for (const std::int64_t layer : indices) {
    if (layer < layers) kinds[static_cast<std::size_t>(layer)] = attention;
  }
  return kinds;
}

Hybrid read(const Config& config) {
  const bool moe = is_type(config, "lfm2_moe", "Lfm2MoeForCausalLM");
  Hybrid spec;
  Decoder& base = spec.decoder.base;
  base.layers = config.size_or({"num_hidden_layers"}, 32);
  const std::int64_t hidden = config.size_or({"hidden_size"}, moe ? 2048 : 2560);
  const std::int64_t heads = config.size_or({"num_attention_heads"}, 32);
  set_sizes(base,
            hidden,
            heads,
            config.size_or({"num_key_value_heads"}, 8),
            moe ? config.size_or({"intermediate_size"}, 7168) : read_ffn(config));
  base.attention.head_dim = config.size_or({"head_dim"}, base.attention.head_dim);
  base.attention.q_norm = "self_attn.q_layernorm";
  base.attention.k_norm = "self_attn.k_layernorm";
  base.attention.names.o = "self_attn.out_proj";
  base.mlp.gate = "feed_forward.w1";
  base.mlp.up = "feed_forward.w3";
  base.mlp.down = "feed_forward.w2";
  base.frame.final_norm = "embedding_norm";
  base.frame.vocab = config.size_or({"vocab_size"}, 65536);
  base.frame.tied = config.flag_or({"tie_embedding", "tie_word_embeddings"}, true);
  spec.kernel = config.size_or({"conv_L_cache"}, 3);
  spec.conv_bias = config.flag_or({"conv_bias"}, false);
  if (!check_sizes(config, base)) return spec;
  spec.kinds = read_kinds(config, base.layers);
  if (!moe) return spec;
  MoeBlock& experts = spec.decoder.moe;
  experts.hidden = hidden;
  experts.ffn = config.size_or({"moe_intermediate_size"}, 1792);
  experts.router = "feed_forward.gate";
  experts.gate_up = "feed_forward.experts.gate_up_proj";
  experts.down = "feed_forward.experts.down_proj";
  read_experts(config, experts, {"num_experts"}, 32, 4);
  const std::int64_t dense = std::min(config.count_or({"num_dense_layers"}, 2), base.layers);
  for (auto kind = spec.kinds.begin() + dense; kind != spec.kinds.end(); ++kind) *kind += sparse;
  return spec;
}

/// Two gates, one before and one after the convolution.
Value short_convolution(LayerBuilder& layer, Value x, const Hybrid& spec) {
  const std::int64_t hidden = spec.decoder.base.frame.hidden;
  const auto project = [&](Value from, std::string_view name, std::int64_t out) {
    return layer.linear(from,
                        {.name = name,
                         .in = hidden,
                         .out = out,
                         .bias = spec.conv_bias,
                         .component = Component::attention_projections});
  };
  const Value gates = project(x, "conv.in_proj", 3 * hidden);
  const Value mixed = layer.convolution(layer.product(gates, gates),
                                        "conv.conv",
                                        spec.kernel,
                                        hidden,
                                        spec.conv_bias,
                                        Rows::tokens,
                                        Component::linear_attention);
  return project(layer.product(gates, mixed), "conv.out_proj", hidden);
}

void describe(LayerBuilder& layer, const Hybrid& spec, int kind) {
  const Decoder& base = spec.decoder.base;
  const std::int64_t hidden = base.frame.hidden;
  Value x = LayerBuilder::input();
  const Value first = norm(layer, x, "operator_norm", hidden);
  x = layer.sum(x,
                (kind & attention) != 0 ? attention_block(layer, first, base.attention)
                                        : short_convolution(layer, first, spec));
  const Value second = norm(layer, x, "ffn_norm", hidden);
  layer.output(layer.sum(x,
                         (kind & sparse) != 0 ? moe_block(layer, second, spec.decoder.moe)
                                              : mlp_block(layer, second, base.mlp)));
}

Model build(const Config& config) {
  const Hybrid spec = read(config);
  if (!config.status()) return {};
  const Decoder& base = spec.decoder.base;
  ModelBuilder builder;
  open_decoder(builder, base.frame);
  builder.layers("model.layers.", spec.kinds, [&](LayerBuilder& layer, int kind) {
    describe(layer, spec, kind);
  });
  close_decoder(builder, base.frame);
  const auto& moe = spec.decoder.moe;
  set_facts(builder.model,
            base.attention,
            base.layers,
            moe.experts > 0 ? moe.ffn : base.mlp.ffn,
            base.mlp.gated,
            base.frame.vocab,
            base.frame.tied);
  builder.model.facts.experts = moe.experts;
  builder.model.facts.experts_active = moe.active;
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_lfm2{
    .name = "lfm2",
    .help = "LFM2: gated short convolutions and attention, MLP or experts",
    .types = "lfm2 Lfm2ForCausalLM lfm2_moe Lfm2MoeForCausalLM",
    .build = build,
    .random_config = {.recurrent = true},
    // h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4; one convolution with kernel 3 and one
    // attention layer. Parameters: embedding, tied to the head, 256; convolution 8*24 + 24 + 64 =
    // 280; q, o 64 each; k, v 32 each; norms of queries and keys 8; MLPs 2*384; norms 5*8: 1544.
    // Per token, forward: 2*(280 + 192 + 768 + 256) = 2992; attention 10 pairs x 2 heads x 2*(4+4)
    // = 320. Training: 3*(4*2992 + 320).
    .example = {.config = R"({"model_type": "lfm2", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "block_auto_adjust_ff_dim": false,
                             "layer_types": ["conv", "full_attention"], "vocab_size": 32})",
                .parameters = 1544,
                .seq_len = 4,
                .training_flops = 36864}};

}  // namespace flopmeter
