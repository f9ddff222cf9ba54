// SPDX-License-Identifier: Apache-2.0
//
// Mistral: LLaMA with a sliding window in every layer; the window is 4096 if the key is missing
// and absent if it is null.  Ministral 3 has none unless the key is set.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  const bool third = is_type(config, "ministral3", "Ministral3ForCausalLM");
  Decoder decoder = read_decoder(config, {.kv_heads = 8, .head_dim = third ? 128 : 0});
  if (third ? config.has("sliding_window") : !config.is_null("sliding_window"))
    decoder.window = config.size_or({"sliding_window"}, 4096);
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_mistral{
    .name = "mistral",
    .help = "Mistral, Ministral 3: grouped keys, sliding window, gated MLP",
    .types = "mistral MistralForCausalLM ministral3 Ministral3ForCausalLM",
    .build = build,
    .random_config = {.keys = R"("sliding_window": null)"},
    // One layer, h = 8, n = 2, g = 1, d = 4, f = 16, V = 32, window 2, s = 4.
    // Parameters: embedding and head 2*256; q, o 64 each; k, v 32 each; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(192 + 384 + 256) = 1664; attention: 1 + 2 + 2 + 2 = 7 pairs x 2 heads
    // x 2*(4+4) = 224. Training: 3*(4*1664 + 224).
    .example = {.config = R"({"model_type": "mistral", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16,
                             "vocab_size": 32, "sliding_window": 2})",
                .parameters = 1112,
                .seq_len = 4,
                .training_flops = 20640}};

}  // namespace flopmeter
