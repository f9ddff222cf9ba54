// SPDX-License-Identifier: Apache-2.0
//
// A GPT described by Megatron's arguments (num_layers, ffn_hidden_size, num_query_groups, ...), as
// in its checkpoints and published tables.  Missing arguments have Megatron's defaults: learned
// positions, LayerNorm, biases, a plain MLP of 4 h, a tied head.
#include "../blocks/moe_block.h"

#include <flopmeter/catalog/model_family.h>

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

/// Megatron's width for a gated MLP keeps the parameters of 4 h, in steps of 64.
std::int64_t default_ffn(std::int64_t hidden, bool gated) {
  return gated ? std::max<std::int64_t>(1, hidden * 8 / 3 / 64) * 64 : 4 * hidden;
}

Decoder read(const Config& config) {
  Decoder decoder;
  const bool gated = config.flag_or({"swiglu"}, false);
  const bool bias = config.flag_or({"add_bias_linear"}, true);
  const bool learned =
      config.text_or({"position_embedding_type"}, "learned_absolute") == "learned_absolute";
  decoder.layers = config.size({"num_layers"});
  decoder.layer_prefix = "decoder.layers.";
  const std::int64_t hidden = config.size({"hidden_size"});
  const std::int64_t heads =
      config.size_or({"num_attention_heads"}, std::max<std::int64_t>(1, hidden / 64));
  set_sizes(decoder,
            hidden,
            heads,
            config.size_or({"num_query_groups"}, heads),
            config.size_or({"ffn_hidden_size"}, default_ffn(hidden, gated)));
  decoder.attention.head_dim = config.size_or({"kv_channels"}, hidden / heads);
  decoder.attention.qkv_bias = bias || config.flag_or({"add_qkv_bias"}, false);
  decoder.attention.out_bias = decoder.mlp.bias = bias;
  decoder.attention.names = {
      .q = "self_attention.linear_qkv", .k = "", .v = "", .o = "self_attention.linear_proj"};
  if (config.flag_or({"qk_layernorm"}, false)) {
    decoder.attention.q_norm = "self_attention.q_layernorm";
    decoder.attention.k_norm = "self_attention.k_layernorm";
  }
  decoder.mlp.gated = gated;
  decoder.mlp.gate = "";
  decoder.mlp.up = "mlp.linear_fc1";
  decoder.mlp.down = "mlp.linear_fc2";
  decoder.norms.before_mlp = "pre_mlp_layernorm";
  decoder.frame = {
      .prefix = "",
      .embed = "embedding.word_embeddings",
      .embed_positions = learned ? "embedding.position_embeddings" : "",
      .final_norm = "decoder.final_layernorm",
      .head = "output_layer",
      .hidden = hidden,
      .vocab = config.size({"padded_vocab_size", "vocab_size"}),
      .positions = config.size_or({"max_position_embeddings", "seq_length", "seq_len"}, 2048),
      .tied = !config.flag_or({"untie_embeddings_and_output_weights"}, false),
      .norm_bias = config.text_or({"normalization"}, "LayerNorm") != "RMSNorm"};
  return decoder;
}

Model build(const Config& config) {
  const Decoder decoder = read(config);
  if (config.flag_or({"multi_latent_attention"}, false))
    config.fail("key 'multi_latent_attention' is true: give the model's own config.json");
  if (!config.has("num_experts")) return build_decoder(config, decoder);
  if (!decoder.mlp.gated || decoder.mlp.bias)
    config.fail("experts are known with swiglu and without add_bias_linear only");
  SparseDecoder spec;
  spec.base = decoder;
  spec.moe.hidden = decoder.frame.hidden;
  spec.moe.ffn = config.size_or({"moe_ffn_hidden_size"}, decoder.mlp.ffn);
  spec.moe.router = "mlp.router";
  spec.moe.gate_up = "mlp.experts.linear_fc1";
  spec.moe.down = "mlp.experts.linear_fc2";
  spec.moe.shared_ffn = config.count_or({"moe_shared_expert_intermediate_size"}, 0);
  read_experts(config, spec.moe, {"num_experts"}, 8, 2, {"moe_router_topk"});
  const std::int64_t step = config.size_or({"moe_layer_freq"}, 1);
  for (std::int64_t i = 0; i < decoder.layers && decoder.layers <= most_layers; ++i)
    spec.sparse.push_back(i % step == 0);
  return build_sparse_decoder(config, spec);
}

constexpr std::array<std::string_view, 2> types = {"megatron", "megatron-gpt"};

}  // namespace

extern constinit const ModelFamily model_megatron_gpt{
    .name = "megatron_gpt",
    .help = "A GPT in the words of Megatron's arguments: num_layers, ffn_hidden_size, swiglu, ...",
    .types = types,
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
