// SPDX-License-Identifier: Apache-2.0
//
// Baichuan 1 and 2: LLaMA with fused query-key-value; the 13B ones use ALiBi.  The normalized head
// of the second counts as a plain one.
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

Model build(const Config& config) {
  Decoder decoder = read_decoder(config);
  decoder.attention.names = {.q = "self_attn.W_pack", .k = "", .v = "", .o = "self_attn.o_proj"};
  return build_decoder(config, decoder);
}

}  // namespace

extern constinit const ModelFamily model_baichuan{
    .name = "baichuan",
    .help = "Baichuan 1, 2: fused query-key-value, gated MLP",
    .types = "baichuan BaichuanForCausalLM BaiChuanForCausalLM",
    .build = build,
    .random_config = {.grouped = false},
    // One layer, h = 8, n = 2, d = 4, f = 16, V = 32, s = 4.
    // Parameters: embedding and head 2*256; W_pack 192; o_proj 64; MLP 3*128; norms 3*8.
    // Per token, forward: 2*(256 + 384 + 256) = 1792; attention: 10 pairs x 2 heads x 2*(4+4) =
    // 320. Training: 3*(4*1792 + 320).
    .example = {.config = R"({"model_type": "baichuan", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32})",
                .parameters = 1176,
                .seq_len = 4,
                .training_flops = 22464}};

}  // namespace flopmeter
