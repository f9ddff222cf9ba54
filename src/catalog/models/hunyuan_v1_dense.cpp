// SPDX-License-Identifier: Apache-2.0
//
// Hunyuan 0.5B to 7B: LLaMA with normalized queries and keys.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  AttentionBlock& attention = decoder.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  attention.q_norm = "self_attn.query_layernorm";
  attention.k_norm = "self_attn.key_layernorm";
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_hunyuan_v1_dense{
    .name = "hunyuan_v1_dense",
    .help = "Hunyuan, dense: grouped keys, normalized queries and keys, gated MLP",
    .types = "hunyuan_v1_dense HunYuanDenseV1ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 8, f = 16, V = 32, s = 4. Parameters: embedding and head
    // 2*256; q, o 128 each; k, v 64 each; norms of queries and keys 8 each; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(384 + 384 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(8+8) =
    // 640. Training: 3*(4*2048 + 640).
    .example = {
        .config = R"({"model_type": "hunyuan_v1_dense", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                             "intermediate_size": 16, "vocab_size": 32})",
        .parameters = 1320,
        .seq_len = 4,
        .training_flops = 26496}};

}  // namespace flopmeter
