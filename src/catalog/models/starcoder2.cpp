// SPDX-License-Identifier: Apache-2.0
//
// StarCoder 2: LayerNorm and biases throughout, an MLP of two matrices.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 2, .tied = true});
  const bool bias = config.flag_or({"use_bias"}, true);
  decoder.attention.qkv_bias = decoder.attention.out_bias = decoder.mlp.bias = bias;
  decoder.mlp.gated = false;
  decoder.mlp.up = "mlp.c_fc";
  decoder.mlp.down = "mlp.c_proj";
  decoder.frame.norm_bias = true;
  decoder.window = config.count_or({"sliding_window"}, 0);
  decoder.dropout = config.number_or({"residual_dropout"}, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_starcoder2{
    .name = "starcoder2",
    .help = "StarCoder 2: LayerNorm, biases, MLP without a gate",
    .types = "starcoder2 Starcoder2ForCausalLM",
    .build = build,
    .random_config = {.gated = false},
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding, tied to
    // the head, 256; q, o 64 + 8 each; k, v 32 + 4 each; MLP 128 + 16 and 128 + 8; norms 3*16. Per
    // token, forward: 2*(192 + 256 + 256) = 1408; attention: 10 pairs x 2 heads x 2*(4+4) = 320.
    // Training: 3*(4*1408 + 320).
    .example = {.config = R"({"model_type": "starcoder2", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 800,
                .seq_len = 4,
                .training_flops = 17856}};

}  // namespace flopmeter
