// SPDX-License-Identifier: Apache-2.0
//
// Aquila 1 and 2: LLaMA under another name.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  return build_decoder(config, read_decoder(config));
}

}  // namespace

extern constinit const ModelFamily model_aquila{
    .name = "aquila",
    .help = "Aquila 1, 2: RMS norm, rotary positions, grouped keys, gated MLP",
    .types = "aquila AquilaForCausalLM AquilaModel",
    .build = build,
    // One layer, h = 8, n = g = 2, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; attention 4*64; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(256 + 384 + 256) = 1792; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1792 + 320).
    .example = {.config = R"({"model_type": "aquila", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1176,
                .seq_len = 4,
                .training_flops = 22464}};

}  // namespace flopmeter
