// SPDX-License-Identifier: Apache-2.0
//
// Qwen 1: `intermediate_size` is twice the MLP's width, `kv_channels` the width of a head, and
// c_attn has a bias even if `no_bias` is set.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  AttentionBlock& attention = decoder.attention;
  const bool bias = !config.flag_or({"no_bias"}, true);
  decoder.layer_prefix = "transformer.h.";
  decoder.frame.prefix = "transformer.";
  decoder.frame.embed = "wte";
  decoder.frame.final_norm = "ln_f";
  attention.head_dim = config.size_or({"kv_channels"}, attention.hidden / attention.heads);
  attention.qkv_bias = true;
  attention.out_bias = decoder.mlp.bias = bias;
  attention.names = {.q = "attn.c_attn", .k = "", .v = "", .o = "attn.c_proj"};
  // Half of the value in released files; some tables list it under a separate name.
  decoder.mlp.ffn = config.size_or({"config_json_intermediate_size"}, decoder.mlp.ffn) / 2;
  decoder.mlp.gate = "mlp.w2";
  decoder.mlp.up = "mlp.w1";
  decoder.mlp.down = "mlp.c_proj";
  decoder.norms = {.before_attention = "ln_1", .before_mlp = "ln_2"};
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_qwen{
    .name = "qwen",
    .help = "Qwen 1: fused query-key-value with bias, gated MLP",
    .types = "qwen QWenLMHeadModel",
    .build = build,
    .random_config = {.grouped = false, .ffn = RandomConfig::Ffn::half},
    // One layer, h = 8, n = 2, d = 4, f = 32 / 2 = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; c_attn 192 + 24; c_proj 64; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(256 + 384 + 256) = 1792; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1792 + 320).
    .example = {.config = R"({"model_type": "qwen", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "kv_channels": 4, "intermediate_size": 32,
                             "vocab_size": 32})",
                .parameters = 1200,
                .seq_len = 4,
                .training_flops = 22464}};

}  // namespace flopmeter
