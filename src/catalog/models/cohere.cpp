// SPDX-License-Identifier: Apache-2.0
//
// Cohere Command R, R+ and R7B: attention and MLP in parallel after one norm without bias, head
// tied to the embedding; `cohere2` has a sliding window in three of four layers.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_windowed(std::int64_t layer, std::int64_t every) {
  return (layer + 1) % every != 0;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config, {.tied = true});
  AttentionBlock& attention = decoder.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  decoder.norms.before_mlp = "";
  decoder.parallel = true;
  if (is_type(config, "cohere2", "Cohere2ForCausalLM")) {
    if (!config.is_null("sliding_window"))
      decoder.window = config.size_or({"sliding_window"}, 4096);
    decoder.windowed = read_windowed(
        config, decoder.layers, is_windowed, config.size_or({"sliding_window_pattern"}, 4));
  } else {
    attention.head_dim = decoder.frame.hidden / attention.heads;  // ignores `head_dim`
    if (config.flag_or({"use_qk_norm"}, false)) {
      attention.q_norm = "self_attn.q_norm";
      attention.k_norm = "self_attn.k_norm";
      attention.norm_whole_width = true;
    }
  }
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_cohere{
    .name = "cohere",
    .help = "Cohere Command R: attention and MLP in parallel, tied head",
    .types = "cohere CohereForCausalLM cohere2 Cohere2ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding, tied to
    // the head, 256; q, o 64 each; k, v 32 each; MLP 3*128; norms 2*8. Per token, forward: 2*(192 +
    // 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "cohere", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 848,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
