// SPDX-License-Identifier: Apache-2.0
//
// Nemotron 3 and 4, Minitron, Jais 2: LayerNorm with biases, an MLP of two matrices with squared
// ReLU.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  const bool biased = is_type(config, "jais2", "Jais2ForCausalLM");
  const bool bias = config.flag_or({"attention_bias"}, biased);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.mlp.gated = false;
  decoder.mlp.bias = config.flag_or({"mlp_bias"}, biased);
  decoder.frame.norm_bias = true;
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_nemotron{
    .name = "nemotron",
    .help = "Nemotron 3 and 4, Minitron, Jais 2: LayerNorm, MLP with squared ReLU and no gate",
    .types = "nemotron NemotronForCausalLM jais2 Jais2ForCausalLM",
    .build = build,
    .random_config = {.gated = false},
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding and head
    // 2*256; q, o 64 each; k, v 32 each; MLP 2*128; norms 3*16. Per token, forward: 2*(192 + 256 +
    // 256) = 1408; attention: 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1408 + 320).
    .example = {.config = R"({"model_type": "nemotron", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1008,
                .seq_len = 4,
                .training_flops = 17856}};

}  // namespace flopmeter
