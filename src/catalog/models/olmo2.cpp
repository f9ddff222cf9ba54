// SPDX-License-Identifier: Apache-2.0
//
// OLMo 2 and 3: norms after attention and MLP in place of before them, and over all queries and
// keys; OLMo 3 has a sliding window in three of four layers.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

bool is_windowed(std::int64_t layer, std::int64_t every) {
  return (layer + 1) % every != 0;
}

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  AttentionBlock& attention = decoder.attention;
  attention.qkv_bias = attention.out_bias = config.flag_or({"attention_bias"}, false);
  attention.q_norm = "self_attn.q_norm";
  attention.k_norm = "self_attn.k_norm";
  attention.norm_whole_width = true;
  decoder.norms = {.before_attention = "",
                   .after_attention = "post_attention_layernorm",
                   .before_mlp = "",
                   .after_mlp = "post_feedforward_layernorm"};
  if (is_type(config, "olmo3", "Olmo3ForCausalLM") && !config.is_null("sliding_window")) {
    decoder.window = config.size_or({"sliding_window"}, 4096);
    decoder.windowed = read_windowed(config, decoder.layers, is_windowed, 4);
  }
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_olmo2{
    .name = "olmo2",
    .help = "OLMo 2 and 3: norms after attention and MLP, normalized queries and keys",
    .types = "olmo2 Olmo2ForCausalLM olmo3 Olmo3ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding and head
    // 2*256; q, o 64 each; k, v 32 each; norms of queries and keys 8 + 4; MLP 3*128; norms 3*8. Per
    // token, forward: 2*(192 + 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) = 320.
    // Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "olmo2", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1124,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
