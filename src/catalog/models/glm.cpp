// SPDX-License-Identifier: Apache-2.0
//
// GLM-4 as in transformers: biases on queries, keys and values, fused gate and up projections;
// `glm4` adds norms after attention and MLP.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 2, .head_dim = 128});
  decoder.attention.qkv_bias = config.flag_or({"attention_bias"}, true);
  decoder.mlp.gate = "";
  decoder.mlp.up = "mlp.gate_up_proj";
  if (is_type(config, "glm4", "Glm4ForCausalLM")) {
    decoder.norms.after_attention = "post_self_attn_layernorm";
    decoder.norms.after_mlp = "post_mlp_layernorm";
  }
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_glm{
    .name = "glm",
    .help = "GLM-4: grouped keys with biases, fused gate and up projections",
    .types = "glm GlmForCausalLM glm4 Glm4ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; q 64 + 8; k, v 32 + 4 each; o 64; gate_up_proj 256;
    // down_proj 128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "glm", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1128,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
