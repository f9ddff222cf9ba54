// SPDX-License-Identifier: Apache-2.0
//
// OLMo: LLaMA with norms that have no weights.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.norms = {.before_attention = "", .before_mlp = ""};
  decoder.frame.final_norm = "";
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_olmo{
    .name = "olmo",
    .help = "OLMo: norms without weights, gated MLP",
    .types = "olmo OlmoForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding and head
    // 2*256; q, o 64 each; k, v 32 each; MLP 3*128. Per token, forward: 2*(192 + 384 + 256) = 1664;
    // attention: 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "olmo", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1088,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
