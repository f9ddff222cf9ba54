// SPDX-License-Identifier: Apache-2.0
//
// Phi 1, 1.5 and 2: attention and MLP in parallel after one norm, biases throughout.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  decoder.frame.final_norm = "final_layernorm";
  decoder.frame.norm_bias = decoder.frame.head_bias = true;
  decoder.attention.qkv_bias = decoder.attention.out_bias = true;
  decoder.attention.names.o = "self_attn.dense";
  if (config.flag_or({"qk_layernorm"}, false)) {
    decoder.attention.q_norm = "self_attn.q_layernorm";
    decoder.attention.k_norm = "self_attn.k_layernorm";
    decoder.attention.norm_bias = true;
  }
  decoder.mlp.gated = false;
  decoder.mlp.bias = true;
  decoder.mlp.up = "mlp.fc1";
  decoder.mlp.down = "mlp.fc2";
  decoder.norms.before_mlp = "";
  decoder.parallel = true;
  decoder.dropout = config.number_or({"resid_pdrop"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_phi{
    .name = "phi",
    .help = "Phi 1, 1.5, 2: parallel layers, biases, plain MLP",
    .types = "phi PhiForCausalLM",
    .build = build,
    .random_config = {.gated = false},
    // One layer, h = 8, n = 2, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding 256; head 256 + 32; q, k, v, dense 64 + 8 each; MLP 128 + 16 and 128 +
    // 8; norms 2*16. Per token, forward: 2*(256 + 256 + 256) = 1536; attention: 10 pairs x 2 heads
    // x 2*(4+4) = 320. Training: 3*(4*1536 + 320).
    .example = {.config = R"({"model_type": "phi", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1144,
                .seq_len = 4,
                .training_flops = 19392}};

}  // namespace flopmeter
