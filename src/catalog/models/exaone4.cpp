// SPDX-License-Identifier: Apache-2.0
//
// EXAONE 4: norms after attention and MLP, normalized queries and keys; all layers but every
// fourth have a window.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_windowed(std::int64_t layer, std::int64_t every) {
  return (layer + 1) % every != 0;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.kv_heads = 32});
  decoder.attention.q_norm = "self_attn.q_norm";
  decoder.attention.k_norm = "self_attn.k_norm";
  decoder.norms = {.before_attention = "",
                   .after_attention = "post_attention_layernorm",
                   .before_mlp = "",
                   .after_mlp = "post_feedforward_layernorm"};
  if (!config.is_null("sliding_window")) {
    decoder.window = config.size_or({"sliding_window"}, 4096);
    // Published files spell the pattern in letters, too, and then list the layers.
    const std::int64_t every =
        config.has("layer_types") ? 4 : config.size_or({"sliding_window_pattern"}, 4);
    decoder.windowed = read_windowed(config, decoder.layers, is_windowed, every);
  }
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_exaone4{
    .name = "exaone4",
    .help = "EXAONE 4: norms after attention and MLP, windows in most layers",
    .types = "exaone4 Exaone4ForCausalLM",
    .build = build,
    .random_config = {.keys = R"("sliding_window": null)"},
    // Two layers, the first with a window of 2; h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; a layer q, o 64 each, k, v 32 each, norms of queries
    // and keys 4 + 4, MLP 3*128, norms 2*8: 600; last norm 8: 1720. Per token, forward: 2*(2*(192 +
    // 384) + 256) = 2816; attention: 7 pairs, then 10, x 2 heads x 2*(4+4) = 544. Training:
    // 3*(4*2816 + 544).
    .example = {.config = R"({"model_type": "exaone4", "hidden_size": 8, "num_hidden_layers": 2,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32, "sliding_window": 2,
                             "sliding_window_pattern": 2})",
                .parameters = 1720,
                .seq_len = 4,
                .training_flops = 35424}};

}  // namespace flopmeter
