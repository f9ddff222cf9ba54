// SPDX-License-Identifier: Apache-2.0
//
// ERNIE 4.5, dense: LLaMA with heads of 128 and one switch for all biases.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  const std::int64_t head_dim = config.is_null("head_dim") ? 0 : 128;
  Decoder decoder = read_decoder(config, {.kv_heads = 2, .head_dim = head_dim, .tied = true});
  const bool bias = config.flag_or({"use_bias"}, false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = decoder.mlp.bias = bias;
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_ernie4_5{
    .name = "ernie4_5",
    .help = "ERNIE 4.5, dense: grouped keys, gated MLP, tied head",
    .types = "ernie4_5 Ernie4_5ForCausalLM Ernie4_5_ForCausalLM",
    .build = build,
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, s = 4. Parameters: embedding, tied to
    // the head, 256; q, o 64 each; k, v 32 each; MLP 3*128; norms 3*8. Per token, forward: 2*(192 +
    // 384 + 256) = 1664; attention: 10 pairs x 2 heads x 2*(4+4) = 320. Training: 3*(4*1664 + 320).
    .example = {.config = R"({"model_type": "ernie4_5", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1,
                             "intermediate_size": 16, "vocab_size": 32, "head_dim": 4})",
                .parameters = 856,
                .seq_len = 4,
                .training_flops = 20928}};

}  // namespace flopmeter
