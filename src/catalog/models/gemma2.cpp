// SPDX-License-Identifier: Apache-2.0
//
// Gemma 2: norms before and after attention and MLP; every other layer, from the first on, has a
// sliding window.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_even(std::int64_t layer, std::int64_t /*unused*/) {
  return layer % 2 == 0;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 4, .head_dim = 256, .tied = true});
  const bool bias = config.flag_or({"attention_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  decoder.norms = {.before_attention = "input_layernorm",
                   .after_attention = "post_attention_layernorm",
                   .before_mlp = "pre_feedforward_layernorm",
                   .after_mlp = "post_feedforward_layernorm"};
  if (!config.is_null("sliding_window")) decoder.window = config.size_or({"sliding_window"}, 4096);
  decoder.windowed = read_windowed(config, decoder.layers, is_even, 0);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_gemma2{
    .name = "gemma2",
    .help = "Gemma 2: alternating sliding windows, norms on both sides, gated MLP",
    .types = "gemma2 Gemma2ForCausalLM",
    .build = build,
    .random_config = {.keys = R"("sliding_window": null)"},
    // Two layers, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, window 2, s = 4.
    // Parameters: embedding, tied to the head, 256; a layer: attention 192, MLP 384, norms 4*8;
    // norm 8. Per token, forward: 2*(2*576 + 256) = 2816; attention: 7 pairs in the windowed layer
    // and 10 in the other x 2 heads x 2*(4+4) = 544. Training: 3*(4*2816 + 544).
    .example = {.config = R"({"model_type": "gemma2", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                             "intermediate_size": 16, "vocab_size": 32, "sliding_window": 2})",
                .parameters = 1480,
                .seq_len = 4,
                .training_flops = 35424}};

}  // namespace flopmeter
