// SPDX-License-Identifier: Apache-2.0
//
// Gemma 1: LLaMA with heads of 256 and the head tied to the embedding.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 16, .head_dim = 256, .tied = true});
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_gemma{
    .name = "gemma",
    .help = "Gemma 1: wide heads, tied head, gated MLP",
    .types = "gemma GemmaForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 8, f = 16, V = 32, s = 4.
    // Parameters: embedding, tied to the head, 256; q, o 128 each; k, v 64 each; MLP 3*128; norms
    // 3*8. Per token, forward: 2*(384 + 384 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(8+8)
    // = 640. Training: 3*(4*2048 + 640).
    .example = {.config = R"({"model_type": "gemma", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1048,
                .seq_len = 4,
                .training_flops = 26496}};

}  // namespace flopmeter
