// SPDX-License-Identifier: Apache-2.0
//
// StableLM: LayerNorm with biases, one norm for attention and MLP in parallel if the
// configuration enables it, and one for each head.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 32});
  decoder.frame.norm_bias = true;
  decoder.attention.qkv_bias = config.flag_or({"use_qkv_bias"}, false);
  if (config.flag_or({"qk_layernorm"}, false)) {
    decoder.attention.q_norm = "self_attn.q_layernorm";
    decoder.attention.k_norm = "self_attn.k_layernorm";
    decoder.attention.norm_whole_width = true;
  }
  decoder.parallel = config.flag_or({"use_parallel_residual"}, false);
  if (decoder.parallel) decoder.norms.before_mlp = "";
  decoder.dropout = config.number_or({"hidden_dropout"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_stablelm{
    .name = "stablelm",
    .help = "StableLM: LayerNorm, partial rotary positions, gated MLP",
    .types = "stablelm StableLmForCausalLM stablelm_epoch StableLMEpochForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding and head
    // 2*256; q, o 64 each; k, v 32 each; MLP 3*128; norms 3*16. Per token, forward: 2*(192 + 384 +
    // 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "stablelm", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1136,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
