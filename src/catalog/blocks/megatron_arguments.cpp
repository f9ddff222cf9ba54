// SPDX-License-Identifier: Apache-2.0
#include "megatron_arguments.h"

#include <algorithm>

namespace flopmeter {
namespace {

/// Megatron's width for a gated MLP keeps the parameters of 4 h, in steps of 64.
std::int64_t default_ffn(std::int64_t hidden, bool gated) {
  return gated ? std::max<std::int64_t>(1, hidden * 8 / 3 / 64) * 64 : 4 * hidden;
}

}  // namespace

Decoder read_megatron_decoder(const Config& config) {
  Decoder decoder;
  const bool gated = config.flag_or({"swiglu"}, false);
  const bool bias = config.flag_or({"add_bias_linear"}, true);
  const bool learned =
      config.text_or({"position_embedding_type"}, "learned_absolute") == "learned_absolute";
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
  decoder.attention.gated = config.flag_or({"attention_output_gate"}, false);
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

MoeBlock read_megatron_experts(const Config& config, const Decoder& decoder) {
  MoeBlock moe;
  moe.hidden = decoder.frame.hidden;
  moe.gated = decoder.mlp.gated;
  moe.ffn = config.size_or({"moe_ffn_hidden_size"}, decoder.mlp.ffn);
  moe.latent = config.count_or({"moe_latent_size"}, 0);
  moe.router = "mlp.router";
  moe.gate_up = "mlp.experts.linear_fc1";
  moe.down = "mlp.experts.linear_fc2";
  moe.shared_ffn = config.count_or({"moe_shared_expert_intermediate_size"}, 0);
  read_experts(config, moe, {"num_experts"}, 8, 2, {"moe_router_topk"});
  return moe;
}

LatentAttention read_megatron_latent_attention(const Config& config, const Decoder& decoder) {
  return {.hidden = decoder.frame.hidden,
          .heads = decoder.attention.heads,
          .q_rank = config.count_or({"q_lora_rank"}, 0),
          .kv_rank = config.size_or({"kv_lora_rank"}, 512),
          .d_nope = config.size_or({"qk_head_dim"}, 128),
          .d_rope = config.size_or({"qk_pos_emb_head_dim"}, 64),
          .d_v = config.size_or({"v_head_dim"}, 128)};
}

DeltaNetBlock read_megatron_delta_net(const Config& config, std::int64_t hidden) {
  const DeltaNetBlock delta{.hidden = hidden,
                            .key_heads = config.size_or({"linear_num_key_heads"}, 16),
                            .value_heads = config.size_or({"linear_num_value_heads"}, 32),
                            .d_k = config.size_or({"linear_key_head_dim"}, 128),
                            .d_v = config.size_or({"linear_value_head_dim"}, 128),
                            .kernel = config.size_or({"linear_conv_kernel_dim"}, 4)};
  check_delta_net(config, delta);
  return delta;
}

void read_megatron_wide_layers(const Config& config, ModelFacts& facts) {
  if (!config.flag_or({"first_last_layers_bf16"}, false)) return;
  facts.wide_first = config.count_or({"num_layers_at_start_in_bf16"}, 1);
  facts.wide_last = config.count_or({"num_layers_at_end_in_bf16"}, 1);
}

}  // namespace flopmeter
