// SPDX-License-Identifier: Apache-2.0
//
// Seed-OSS and InternLM 3: LLaMA with biases chosen part by part, each under its own keys.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  const bool seed = is_type(config, "seed_oss", "SeedOssForCausalLM");
  Decoder decoder = read_decoder(
      config,
      {.kv_heads = seed ? 8 : 0, .head_dim = seed && !config.is_null("head_dim") ? 128 : 0});
  decoder.attention.qkv_bias = config.flag_or({seed ? "attention_bias" : "qkv_bias"}, seed);
  decoder.attention.out_bias = config.flag_or({seed ? "attention_out_bias" : "bias"}, false);
  decoder.mlp.bias = config.flag_or({seed ? "mlp_bias" : "bias"}, false);
  decoder.dropout = config.number_or({"residual_dropout"}, seed ? 0.1 : 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_seed_oss{
    .name = "seed_oss",
    .help = "Seed-OSS, InternLM 3: LLaMA with biases chosen part by part",
    .types = "seed_oss SeedOssForCausalLM internlm3 InternLM3ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; q 64 + 8; k, v 32 + 4 each; o 64; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "seed_oss", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1128,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
