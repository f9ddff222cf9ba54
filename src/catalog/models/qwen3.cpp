// SPDX-License-Identifier: Apache-2.0
//
// Qwen 3, dense: queries and keys are normalized per head, whose width is separate from the hidden
// size.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool from_layer(std::int64_t layer, std::int64_t first) {
  return layer >= first;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 32, .head_dim = 128});
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.attention.q_norm = "self_attn.q_norm";
  decoder.attention.k_norm = "self_attn.k_norm";
  if (config.flag_or({"use_sliding_window"}, false) && !config.is_null("sliding_window")) {
    decoder.window = config.size_or({"sliding_window"}, 4096);
    const std::int64_t first = config.count_or({"max_window_layers"}, 28);
    decoder.windowed = read_windowed(config, decoder.layers, from_layer, first);
  }
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_qwen3{
    .name = "qwen3",
    .help = "Qwen 3: grouped keys, normalized queries and keys, gated MLP",
    .types = "qwen3 Qwen3ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 8, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; q, o 128 each; k, v 64 each; q_norm, k_norm 8 each;
    // MLP 3*128; norms 3*8.
    // Per token, forward: 2*(384 + 384 + 256) = 2048; attention: 10 pairs x 2 heads x 2*(8+8) =
    // 640. Training: 3*(4*2048 + 640).
    .example = {.config = R"({"model_type": "qwen3", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1320,
                .seq_len = 4,
                .training_flops = 26496}};

}  // namespace flopmeter
