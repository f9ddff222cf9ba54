// SPDX-License-Identifier: Apache-2.0
//
// InternLM 1: LLaMA with biases in attention.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  decoder.attention.qkv_bias = decoder.attention.out_bias = config.flag_or({"bias"}, true);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_internlm{
    .name = "internlm",
    .help = "InternLM 1: biases in attention, gated MLP",
    .types = "internlm InternLMForCausalLM",
    .build = build,
    .random_config = {.grouped = false},
    // One layer, h = 8, n = 2, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; q, k, v, o 64 + 8 each; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(256 + 384 + 256) = 1792; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1792 + 320).
    .example = {.config = R"({"model_type": "internlm", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1208,
                .seq_len = 4,
                .training_flops = 22464}};

}  // namespace flopmeter
