// SPDX-License-Identifier: Apache-2.0
//
// Qwen 1.5, 2 and 2.5: LLaMA with biases on queries, keys and values; a sliding window in the upper
// layers if it is enabled.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool from_layer(std::int64_t layer, std::int64_t first) {
  return layer >= first;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 32});
  decoder.attention.qkv_bias = true;
  if (config.flag_or({"use_sliding_window"}, false) && !config.is_null("sliding_window")) {
    decoder.window = config.size_or({"sliding_window"}, 4096);
    const std::int64_t first = config.count_or({"max_window_layers"}, 28);
    decoder.windowed = read_windowed(config, decoder.layers, from_layer, first);
  }
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_qwen2{
    .name = "qwen2",
    .help = "Qwen 1.5, 2, 2.5: grouped keys with biases, gated MLP",
    .types = "qwen2 Qwen2ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; q 64 + 8; k, v 32 + 4 each; o 64; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "qwen2", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
                             "vocab_size": 32})",
                .parameters = 1128,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
