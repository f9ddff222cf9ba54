// SPDX-License-Identifier: Apache-2.0
//
// A GPT described by Megatron's arguments (num_layers, ffn_hidden_size, num_query_groups, ...), as
// in its checkpoints and published tables.  Missing arguments have Megatron's defaults: learned
// positions, LayerNorm, biases, a plain MLP of 4 h, a tied head.
#include "../blocks/megatron_arguments.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// By layer: Megatron's parser makes a list of 0 and 1, or a number N (every Nth from the first).
std::vector<bool> read_sparse(const Config& config, std::int64_t layers) {
  std::vector<bool> sparse;
  if (!config.has("num_experts") || layers > most_layers) return sparse;
  const std::vector<std::int64_t> list = config.counts({"moe_layer_pattern"});
  const std::int64_t step = config.size_or({"moe_layer_freq"}, 1);
  for (std::int64_t i = 0; i < layers; ++i)
    sparse.push_back(list.empty() ? i % step == 0
                                  : list[static_cast<std::size_t>(i) % list.size()] != 0);
  if (!list.empty() && static_cast<std::int64_t>(list.size()) != layers)
    config.fail("key 'moe_layer_pattern' must have one entry per layer (num_layers)");
  return sparse;
}

/// By layer: 1 for a gated delta net, 0 for attention.
std::vector<int> read_linear(const Config& config, std::int64_t layers) {
  std::vector<int> linear;
  for (const std::int64_t each : config.counts({"linear_attention_pattern"}))
    linear.push_back(each != 0 ? 1 : 0);
  if (!linear.empty() && static_cast<std::int64_t>(linear.size()) != layers)
    config.fail("key 'linear_attention_pattern' must have one entry per layer (num_layers)");
  return linear;
}

/// Layers that mix experts, latent attention, delta nets, and prediction.
Model build_mixed(const Config& config, Decoder decoder, const std::vector<bool>& sparse) {
  const MoeBlock moe = sparse.empty() ? MoeBlock{} : read_megatron_experts(config, decoder);
  if (!sparse.empty() && decoder.mlp.bias)
    config.fail("experts are known without add_bias_linear only");
  const std::vector<int> linear = read_linear(config, decoder.layers);
  const DeltaNetBlock delta =
      linear.empty() ? DeltaNetBlock{} : read_megatron_delta_net(config, decoder.frame.hidden);
  const bool latent = config.flag_or({"multi_latent_attention"}, false);
  const LatentAttention compressed =
      latent ? read_megatron_latent_attention(config, decoder) : LatentAttention{};
  if (latent)  // for the checks: a latent head is as wide as its parts
    decoder.attention.head_dim = compressed.d_nope + compressed.d_rope + compressed.d_v;
  if (!check_sizes(config, decoder)) return {};
  // Bits of a kind: the first is set if it has experts, the second if it is a delta net.
  std::vector<int> kinds;
  for (std::size_t i = 0; i < static_cast<std::size_t>(decoder.layers); ++i)
    kinds.push_back((!sparse.empty() && sparse[i] ? 1 : 0) + (linear.empty() ? 0 : 2 * linear[i]));
  const DecoderFrame& frame = decoder.frame;
  const auto decoder_layer = [&](LayerBuilder& layer, Value x, int kind) {
    const Value a = norm(layer, x, decoder.norms.before_attention, frame.hidden, frame.norm_bias);
    x = layer.sum(x,
                  kind >= 2 ? delta_net_block(layer, a, delta)
                  : latent  ? latent_attention(layer, a, compressed)
                            : attention_block(layer, a, decoder.attention));
    const Value y = norm(layer, x, decoder.norms.before_mlp, frame.hidden, frame.norm_bias);
    return layer.sum(x,
                     kind % 2 == 1 ? moe_block(layer, y, moe) : mlp_block(layer, y, decoder.mlp));
  };
  ModelBuilder builder;
  open_decoder(builder, frame);
  builder.layers(decoder.layer_prefix, kinds, [&](LayerBuilder& layer, int kind) {
    layer.output(decoder_layer(layer, LayerBuilder::input(), kind));
  });
  if (const std::int64_t predictions = config.count_or({"mtp_num_layers"}, 0); predictions > 0) {
    // A prediction layer has the parts of the last layer.
    add_predictions(builder, decoder.layers, predictions, frame, [&](LayerBuilder& layer, Value x) {
      return decoder_layer(layer, x, kinds.back());
    });
  }
  close_decoder(builder, frame);
  const bool any = std::find(sparse.begin(), sparse.end(), true) != sparse.end();
  set_facts(builder.model,
            decoder.attention,
            decoder.layers,
            any ? moe.ffn : decoder.mlp.ffn,
            decoder.mlp.gated,
            frame.vocab,
            frame.tied);
  if (latent) {
    builder.model.facts.d_qk = compressed.d_nope + compressed.d_rope;
    builder.model.facts.d_v = compressed.d_v;
  }
  if (any) {
    builder.model.facts.experts = moe.experts;
    builder.model.facts.experts_active = moe.active;
  }
  return std::move(builder.model);
}

Model build(const Config& config) {
  Decoder decoder = read_megatron_decoder(config);
  decoder.layers = config.size({"num_layers"});
  const std::vector<bool> sparse = read_sparse(config, decoder.layers);
  const bool mixed = !sparse.empty() || config.has("mtp_num_layers") ||
                     config.has("linear_attention_pattern") ||
                     config.flag_or({"multi_latent_attention"}, false);
  Model model = mixed && config.status() ? build_mixed(config, decoder, sparse)
                                         : build_decoder(config, decoder);
  read_megatron_wide_layers(config, model.facts);
  return model;
}

}  // namespace

extern constinit const ModelFamily model_megatron_gpt{
    .name = "megatron_gpt",
    .help = "A GPT in the words of Megatron's arguments: num_layers, swiglu, mtp_num_layers, ...",
    .types = "megatron megatron-gpt",
    .build = build,
    .random_config = {.keys = R"("swiglu": true)"},
    // One layer, h = 8, n = 2, d = 4, f = 4h = 32, V = 32, 16 positions, s = 4.
    // Parameters: embedding, tied to the head, 256; positions 128; linear_qkv 192 + 24; linear_proj
    // 64 + 8; MLP 256 + 32 and 256 + 8; norms 3*16.
    // Per token, forward: 2*(256 + 512 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*2048 + 320).
    .example = {.config = R"({"model_type": "megatron", "num_layers": 1, "hidden_size": 8,
                             "num_attention_heads": 2, "seq_length": 16, "vocab_size": 32})",
                .parameters = 1272,
                .seq_len = 4,
                .training_flops = 25536}};

}  // namespace flopmeter
